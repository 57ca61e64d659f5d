// btl_cxxbox: the transport of ../btl_mailbox in C++17. Every rank owns one AF_UNIX datagram socket; a send is one
// datagram into the peer's socket. No exception leaves an op: Strata is C.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>
#include <strata/sdk/btl.h>

namespace
{

// The values of our parameters; filled by the base before open is called.
struct config {
    size_t max_send;
};

// What each rank publishes, and what a sender is recognised by.
struct address {
    sockaddr_un name;
    socklen_t length;
};

// In front of every datagram.
struct wire {
    int32_t rank; // of the sender, checked against the address that this rank published
    uint16_t am;
    uint16_t hdr_len;
    uint32_t len;
};
static_assert(sizeof(wire) == 12, "the same on all ranks");

// A peer. The base is the part that the layers above read.
struct endpoint : st_btl_endpoint {
    address peer;
};

// The module: one socket. The base is the part that the layers above read.
struct module : st_btl {
    int fd = -1;
    bool refused = false; // a send, since the last arm
    struct st_rte *rte = nullptr;
    std::vector<char> buffer; // where arriving datagrams land
    std::unordered_map<int, std::unique_ptr<endpoint>> peers;

    module() :st_btl() {}
    module(const module &) = delete;
    module &operator=(const module &) = delete;
    ~module()
    {
        if (fd >= 0)
            ::close(fd);
    }
    int open_socket(address *mine);
    endpoint *find(int to, int *rc);
};

int module::open_socket(address *mine)
{
    *mine = {};
    mine->name.sun_family = AF_UNIX;
    mine->length = sizeof(mine->name);
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    // The kernel chooses a name that is no file.
    bool good = fd >= 0 && bind(fd, reinterpret_cast<sockaddr *>(&mine->name), sizeof(sa_family_t)) == 0 &&
                getsockname(fd, reinterpret_cast<sockaddr *>(&mine->name), &mine->length) == 0;
    return good ? STRATA_OK : STRATA_ERR_SYSTEM;
}

// The endpoint of a rank, made from what it published; NULL with the reason in *rc.
endpoint *module::find(int to, int *rc)
{
    auto known = peers.find(to);
    if (known != peers.end())
        return known->second.get();
    void *blob = nullptr;
    size_t length = 0;
    *rc = rte->ops->get(rte, to, "btl_cxxbox", &blob, &length);
    if (*rc != STRATA_OK)
        return nullptr;
    std::unique_ptr<void, decltype(&std::free)> owner(blob, std::free);
    *rc = STRATA_ERR_PROTOCOL;
    if (length != sizeof(address))
        return nullptr;
    *rc = STRATA_ERR_NOMEM;
    try {
        auto made = std::make_unique<endpoint>();
        made->btl = this;
        made->rank = to;
        made->caps = caps;
        std::memcpy(&made->peer, blob, sizeof(made->peer));
        endpoint *e = peers.emplace(to, std::move(made)).first->second.get();
        *rc = STRATA_OK;
        return e;
    } catch (const std::bad_alloc &) {
        return nullptr;
    }
}

int reach(st_btl *btl, int rank)
{
    struct st_rte *rte = static_cast<module *>(btl)->rte;
    return rank != rte->rank && rte->ops->is_local(rte, rank) ? STRATA_OK : STRATA_ERR_UNREACHABLE;
}

int connect(st_btl *btl, int rank, st_btl_endpoint **out)
{
    int rc = STRATA_OK;
    endpoint *e = static_cast<module *>(btl)->find(rank, &rc);
    if (e)
        *out = e;
    return rc;
}

void disconnect(st_btl_endpoint *ep)
{
    static_cast<module *>(ep->btl)->peers.erase(ep->rank);
}

int send(st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data, uint32_t len)
{
    auto *m = static_cast<module *>(ep->btl);
    address &to = static_cast<endpoint *>(ep)->peer;
    wire front = {m->rte->rank, static_cast<uint16_t>(am), static_cast<uint16_t>(hdr_len), len};
    std::array<iovec, 3> parts = {
        {{&front, sizeof(front)}, {const_cast<void *>(hdr), hdr_len}, {const_cast<void *>(data), len}}};
    msghdr msg = {};
    msg.msg_name = &to.name;
    msg.msg_namelen = to.length;
    msg.msg_iov = parts.data();
    msg.msg_iovlen = parts.size();

    if (sendmsg(m->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
        m->bytes_sent += len;
        m->messages_sent++;
        return STRATA_OK;
    }
    if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ENOMEM) {
        m->refused = true;
        return STRATA_ERR_AGAIN; // full: the layer above comes again
    }
    m->peer_failed(m->peer_failed_arg, ep->rank, STRATA_ERR_PEER, std::strerror(errno));
    return STRATA_ERR_PEER;
}

// Hands on one datagram, if it is one that the peer which it names can have sent.
void take(module *m, size_t n, const address &from)
{
    wire front;
    if (n < sizeof(front) || n > m->buffer.size())
        return;
    std::memcpy(&front, m->buffer.data(), sizeof(front));
    if (front.rank < 0 || front.rank >= m->rte->size || front.am >= ST_AM_COUNT || front.hdr_len > ST_BTL_HDR_MAX ||
        sizeof(front) + front.hdr_len + front.len != n)
        return;
    int rc = STRATA_OK;
    const endpoint *e = m->find(front.rank, &rc);
    if (!e || e->peer.length != from.length || std::memcmp(&e->peer.name, &from.name, from.length) != 0)
        return;
    st_frag frag = {};
    frag.hdr = m->buffer.data() + sizeof(front);
    frag.hdr_len = front.hdr_len;
    frag.data = m->buffer.data() + sizeof(front) + front.hdr_len;
    frag.len = front.len;
    frag.rank = front.rank;
    frag.btl = m;
    st_btl_deliver(m, static_cast<enum st_am>(front.am), &frag);
}

int progress(st_btl *btl)
{
    auto *m = static_cast<module *>(btl);
    int events = 0;
    while (events < 8) { // bounded time
        address from = {};
        from.length = sizeof(from.name);
        ssize_t n = recvfrom(m->fd, m->buffer.data(), m->buffer.size(), MSG_DONTWAIT | MSG_TRUNC,
                             reinterpret_cast<sockaddr *>(&from.name), &from.length);
        if (n < 0)
            break;
        events++;
        take(m, static_cast<size_t>(n), from);
    }
    return events;
}

int arm(st_btl *btl, st_btl_wait *w)
{
    auto *m = static_cast<module *>(btl);
    w->fd = m->fd; // readable from the moment that a datagram is there
    // Nothing tells of room in a peer's socket: who was refused does not sleep.
    return std::exchange(m->refused, false) ? STRATA_ERR_AGAIN : STRATA_OK;
}

void disarm(st_btl * /*btl*/) {}

void mem_report(st_btl *btl, st_mem_line_fn line, void *arg)
{
    auto *m = static_cast<module *>(btl);
    strata_mem_line_t rings = {}, peers = {};
    rings.component = peers.component = "btl_cxxbox";
    rings.category = "eager rings";
    rings.bytes = m->buffer.size();
    peers.category = "peers";
    peers.bytes = m->peers.size() * sizeof(endpoint);
    line(arg, &rings);
    line(arg, &peers);
}

void close(st_btl *btl)
{
    delete static_cast<module *>(btl);
}

constexpr st_btl_ops make_ops()
{
    st_btl_ops ops = {};
    ops.reach = reach;
    ops.connect = connect;
    ops.disconnect = disconnect;
    ops.send = send;
    ops.progress = progress;
    ops.arm = arm;
    ops.disarm = disarm;
    ops.mem_report = mem_report;
    ops.close = close;
    return ops;
}
constexpr st_btl_ops ops = make_ops();

int open(strata_t *s, const st_component *c, const void *values, st_btl ***mods, size_t *n)
try {
    auto m = std::make_unique<module>();
    address mine;

    m->rte = st_rte(s);
    m->max_send = m->pipeline_send = static_cast<uint32_t>(static_cast<const config *>(values)->max_send);
    m->eager_limit = m->max_send < 8192 ? m->max_send : 8192;
    m->buffer.resize(sizeof(wire) + ST_BTL_HDR_MAX + m->max_send);
    if (m->open_socket(&mine) != STRATA_OK) {
        st_reject(s, c, "cannot make a datagram socket: %s", std::strerror(errno));
        return STRATA_ERR_SYSTEM;
    }
    int rc = m->rte->ops->put(m->rte, "btl_cxxbox", &mine, sizeof(mine));
    if (rc != STRATA_OK)
        return rc;
    m->ops = &ops;
    m->context = s;
    m->component = c;
    m->caps = ST_BTL_ORDERED | ST_BTL_COSTLY_POLL;
    m->facts.latency_ns = 5000;
    m->facts.bandwidth_mbs = 1000;
    m->exclusivity = 5;
    // The base frees the array.
    auto **list = static_cast<st_btl **>(std::malloc(sizeof(st_btl *)));
    if (!list)
        return STRATA_ERR_NOMEM;
    list[0] = m.release();
    *mods = list;
    *n = 1;
    return STRATA_OK;
} catch (const std::bad_alloc &) {
    return STRATA_ERR_NOMEM;
}

constexpr st_param make_max_send()
{
    st_param p = {};
    p.name = "max_send";
    p.type = ST_PARAM_SIZE;
    p.offset = offsetof(config, max_send);
    p.dflt = "32k";
    p.min = 1024;
    p.max = 128 * 1024;
    p.unit = "bytes";
    p.help = "Largest payload of one datagram.";
    p.level = 4;
    return p;
}
constexpr st_param params[] = {make_max_send()};
constexpr st_btl_component_ops component_ops = {open, 0};

constexpr st_component make_component()
{
    st_component c = st_component_head("btl", "cxxbox", "1.0", "example transport in C++: datagrams of one machine");
    c.ops_size = sizeof(component_ops);
    c.priority = 5;
    c.params = params;
    c.n_params = sizeof(params) / sizeof(params[0]);
    c.config_size = sizeof(config);
    c.ops = &component_ops;
    return c;
}

} // namespace

// The one symbol that the plugin exports.
ST_COMPONENT(btl, cxxbox) = make_component();
