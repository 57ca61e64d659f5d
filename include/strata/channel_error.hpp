/* Errors of channels in C++17, header only. */
#ifndef STRATA_CHANNEL_ERROR_HPP
#define STRATA_CHANNEL_ERROR_HPP

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include <strata/channel.h>

namespace strata_cxx
{

/* A call's status, by name, and whose channel it is about. */
class channel_error : public std::runtime_error
{
  public:
    channel_error(int status, const char *call, int id = -1)
        : std::runtime_error(call + (id < 0 ? "" : " (id " + std::to_string(id) + ")") + ": " +
                             strata_strerror(status)),
          status_(status), id_(id)
    {
    }
    int status() const noexcept { return status_; }
    /* The rank of the other end; from a set the id that the end was added with. -1: the error is about none. */
    int id() const noexcept { return id_; }

  private:
    int status_, id_;
};

namespace detail
{
/* The status itself when it is no error. */
inline int check(int rc, const char *call, int id = -1)
{
    if (rc < 0)
        throw channel_error(rc, call, id);
    return rc;
}

/* Makes several calls though some may throw; raise throws the first error. */
class first_error
{
  public:
    template <class Call> void from(Call &&call)
    {
        try {
            std::forward<Call>(call)();
        } catch (...) {
            if (!error_)
                error_ = std::current_exception();
        }
    }
    void raise() const
    {
        if (error_)
            std::rethrow_exception(error_);
    }

  private:
    std::exception_ptr error_;
};
} // namespace detail

} // namespace strata_cxx

#endif
