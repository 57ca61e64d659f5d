"""What reports say of the machine."""
import platform


def processor():
    """The model of the first processor, or the architecture where the kernel names none."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()
