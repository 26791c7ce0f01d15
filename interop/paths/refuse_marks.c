// Preloaded into a program: calls that send with an ECN mark fail, as on systems that refuse the mark.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

static int marked(const struct msghdr *message)
{
    struct cmsghdr *part = CMSG_FIRSTHDR(message);
    for (; part; part = CMSG_NXTHDR((struct msghdr *)message, part)) {
        int ipv4 = part->cmsg_level == IPPROTO_IP && part->cmsg_type == IP_TOS;
        int ipv6 = part->cmsg_level == IPPROTO_IPV6 && part->cmsg_type == IPV6_TCLASS;
        if (ipv4 || ipv6)
            return 1;
    }
    return 0;
}

ssize_t sendmsg(int socket, const struct msghdr *message, int flags)
{
    static ssize_t (*next)(int, const struct msghdr *, int);
    if (!next)
        next = dlsym(RTLD_NEXT, "sendmsg");
    if (marked(message)) {
        errno = EINVAL;
        return -1;
    }
    return next(socket, message, flags);
}

int sendmmsg(int socket, struct mmsghdr *messages, unsigned int count, int flags)
{
    static int (*next)(int, struct mmsghdr *, unsigned int, int);
    unsigned int unmarked = 0;
    if (!next)
        next = dlsym(RTLD_NEXT, "sendmmsg");
    while (unmarked < count && !marked(&messages[unmarked].msg_hdr))
        unmarked++;
    if (unmarked == 0 && count > 0) {
        errno = EINVAL;
        return -1;
    }
    return next(socket, messages, unmarked, flags);
}
