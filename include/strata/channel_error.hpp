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

/* The error status of a call; what() names the call and the channel. */
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
    /* The rank of the other end; for an end of a set, the id given to channel_set::add. -1: no end is concerned. */
    int id() const noexcept { return id_; }

  private:
    int status_, id_;
};

namespace detail
{
/* Returns the status if it is no error; throws otherwise. */
inline int check(int rc, const char *call, int id = -1)
{
    if (rc < 0)
        throw channel_error(rc, call, id);
    return rc;
}

/* Makes several calls, also after one has thrown; raise throws the first error. */
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
