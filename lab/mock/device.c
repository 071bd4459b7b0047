// A libibverbs of one device that does every request while it is posted, for counting instructions: nothing
// in it waits, so two programs that post and poll the same do the same work here. See docs/verbs.md.
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The header redirects these names; the library exports them.
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_get_device_list

#define RING 65536 // a power of two, above what any queue here is asked to hold
#define REGIONS 256
#define PAIRS 256

struct channel {
    struct ibv_comp_channel channel;
    int bell;
};

struct queue {
    struct ibv_cq cq;
    pthread_spinlock_t lock;
    int armed;
    uint32_t head, tail;
    struct ibv_wc ring[RING];
};

struct receive {
    uint64_t wr_id;
    struct ibv_sge slice;
};

struct pair {
    struct ibv_qp qp;
    pthread_spinlock_t lock;
    uint32_t peer, head, tail, depth;
    int signal_all;
    struct receive *receives;
};

static struct ibv_device *device = (struct ibv_device *)"mock0";
static struct ibv_mr *regions[REGIONS];
static struct pair *pairs[PAIRS];

static void *new(size_t size) {
    return calloc(1, size);
}

// The bytes at `addr`, where the region of `key` holds them all.
static void *bytes(uint32_t key, uint64_t addr, uint32_t length) {
    struct ibv_mr *mr = key < REGIONS ? regions[key] : NULL;
    uint64_t start = mr ? (uint64_t)mr->addr : 0;
    if (!mr || addr < start || addr - start > mr->length || mr->length - (addr - start) < length)
        return NULL;
    return (void *)addr;
}

static void completed(struct pair *pair, struct ibv_cq *cq, uint64_t wr_id, int status, int opcode, uint32_t length) {
    struct queue *queue = (struct queue *)cq;
    pthread_spin_lock(&queue->lock);
    struct ibv_wc *wc = &queue->ring[queue->tail++ % RING];
    wc->wr_id = wr_id;
    wc->status = status;
    wc->opcode = opcode;
    wc->byte_len = length;
    wc->qp_num = pair->qp.qp_num;
    wc->wc_flags = 0;
    if (queue->armed) {
        queue->armed = 0;
        if (write(((struct channel *)cq->channel)->bell, &cq, sizeof cq) < 0)
            abort();
    }
    pthread_spin_unlock(&queue->lock);
}

static int sent(struct pair *pair, const struct ibv_sge *from) {
    struct pair *peer = pair->peer < PAIRS ? pairs[pair->peer] : NULL;
    if (!peer || peer->head == peer->tail)
        return IBV_WC_RNR_RETRY_EXC_ERR;
    struct receive *into = &peer->receives[peer->head++ % peer->depth];
    void *source = bytes(from->lkey, from->addr, from->length);
    void *target = bytes(into->slice.lkey, into->slice.addr, from->length);
    if (!source || !target || from->length > into->slice.length)
        return IBV_WC_LOC_PROT_ERR;
    memcpy(target, source, from->length);
    completed(peer, peer->qp.recv_cq, into->wr_id, IBV_WC_SUCCESS, IBV_WC_RECV, from->length);
    return IBV_WC_SUCCESS;
}

static int done(struct pair *pair, const struct ibv_send_wr *wr) {
    if (pair->qp.state != IBV_QPS_RTS)
        return IBV_WC_WR_FLUSH_ERR;
    if (wr->num_sge == 0)
        return IBV_WC_SUCCESS;
    const struct ibv_sge *slice = wr->sg_list;
    if (wr->opcode == IBV_WR_SEND)
        return sent(pair, slice);
    void *local = bytes(slice->lkey, slice->addr, slice->length);
    void *remote = bytes(wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, slice->length);
    if (!local)
        return IBV_WC_LOC_PROT_ERR;
    if (!remote)
        return IBV_WC_REM_ACCESS_ERR;
    if (wr->opcode == IBV_WR_RDMA_READ)
        memcpy(local, remote, slice->length);
    else
        memcpy(remote, local, slice->length);
    return IBV_WC_SUCCESS;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
    struct pair *pair = (struct pair *)qp;
    pthread_spin_lock(&pair->lock);
    for (; wr; wr = wr->next) {
        if (wr->num_sge > 1 || (wr->opcode != IBV_WR_RDMA_READ && wr->opcode != IBV_WR_RDMA_WRITE && wr->opcode != IBV_WR_SEND)) {
            *bad = wr;
            pthread_spin_unlock(&pair->lock);
            return EINVAL;
        }
        int status = done(pair, wr);
        if (status != IBV_WC_SUCCESS)
            qp->state = IBV_QPS_ERR;
        if (status != IBV_WC_SUCCESS || pair->signal_all || wr->send_flags & IBV_SEND_SIGNALED) {
            static const int opcodes[] = {[IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ, [IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE, [IBV_WR_SEND] = IBV_WC_SEND};
            completed(pair, qp->send_cq, wr->wr_id, status, opcodes[wr->opcode], wr->num_sge ? wr->sg_list->length : 0);
        }
    }
    pthread_spin_unlock(&pair->lock);
    return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    struct pair *pair = (struct pair *)qp;
    pthread_spin_lock(&pair->lock);
    for (; wr; wr = wr->next) {
        if (wr->num_sge > 1 || pair->tail - pair->head == pair->depth) {
            *bad = wr;
            pthread_spin_unlock(&pair->lock);
            return ENOMEM;
        }
        struct receive *receive = &pair->receives[pair->tail++ % pair->depth];
        receive->wr_id = wr->wr_id;
        receive->slice = wr->num_sge ? *wr->sg_list : (struct ibv_sge){0};
    }
    pthread_spin_unlock(&pair->lock);
    return 0;
}

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *into) {
    struct queue *queue = (struct queue *)cq;
    int count = 0;
    pthread_spin_lock(&queue->lock);
    for (; count < most && queue->head != queue->tail; count++)
        into[count] = queue->ring[queue->head++ % RING];
    pthread_spin_unlock(&queue->lock);
    return count;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited) {
    (void)solicited;
    ((struct queue *)cq)->armed = 1;
    return 0;
}

struct ibv_device **ibv_get_device_list(int *count) {
    struct ibv_device **list = new(2 * sizeof *list);
    list[0] = device;
    if (count)
        *count = 1;
    return list;
}

void ibv_free_device_list(struct ibv_device **list) {
    free(list);
}

const char *ibv_get_device_name(struct ibv_device *one) {
    return (const char *)one;
}

struct ibv_context *ibv_open_device(struct ibv_device *one) {
    struct ibv_context *context = new(sizeof *context);
    int ends[2];
    if (pipe(ends))
        return NULL;
    context->device = one;
    context->async_fd = ends[0];
    context->ops.post_send = post_send;
    context->ops.post_recv = post_recv;
    context->ops.poll_cq = poll_cq;
    context->ops.req_notify_cq = req_notify_cq;
    return context;
}

int ibv_close_device(struct ibv_context *context) {
    free(context);
    return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *into) {
    (void)context;
    *into = (struct ibv_device_attr){.max_qp_wr = RING / 4, .max_cqe = RING, .max_sge = 1, .phys_port_cnt = 1, .max_qp_rd_atom = 16, .max_qp_init_rd_atom = 16, .max_srq_wr = 0};
    return 0;
}

int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *compatible) {
    struct ibv_port_attr *into = (struct ibv_port_attr *)compatible;
    (void)context, (void)port;
    into->state = IBV_PORT_ACTIVE;
    into->active_mtu = IBV_MTU_4096;
    into->max_msg_sz = 1 << 30;
    into->gid_tbl_len = 1;
    into->link_layer = IBV_LINK_LAYER_ETHERNET;
    return 0;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *into) {
    (void)context, (void)port, (void)index;
    memset(into, 1, sizeof *into);
    return 0;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event) {
    (void)context, (void)event;
    errno = EAGAIN;
    return -1;
}

void ibv_ack_async_event(struct ibv_async_event *event) {
    (void)event;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context) {
    struct ibv_pd *pd = new(sizeof *pd);
    pd->context = context;
    return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd) {
    free(pd);
    return 0;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access) {
    (void)access;
    for (uint32_t key = 1; key < REGIONS; key++) {
        if (regions[key])
            continue;
        struct ibv_mr *mr = new(sizeof *mr);
        *mr = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = addr, .length = length, .lkey = key, .rkey = key};
        return regions[key] = mr;
    }
    errno = ENOMEM;
    return NULL;
}

int ibv_dereg_mr(struct ibv_mr *mr) {
    regions[mr->lkey] = NULL;
    free(mr);
    return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context) {
    struct channel *made = new(sizeof *made);
    int ends[2];
    if (pipe(ends))
        return NULL;
    made->channel.context = context;
    made->channel.fd = ends[0];
    made->bell = ends[1];
    return &made->channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel) {
    close(channel->fd);
    close(((struct channel *)channel)->bell);
    free(channel);
    return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int entries, void *own, struct ibv_comp_channel *channel, int vector) {
    (void)vector;
    struct queue *queue = new(sizeof *queue);
    queue->cq.context = context;
    queue->cq.cq_context = own;
    queue->cq.channel = channel;
    queue->cq.cqe = entries;
    pthread_spin_init(&queue->lock, PTHREAD_PROCESS_PRIVATE);
    return &queue->cq;
}

int ibv_destroy_cq(struct ibv_cq *cq) {
    free(cq);
    return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **own) {
    if (read(channel->fd, cq, sizeof *cq) != sizeof *cq)
        return -1;
    *own = (*cq)->cq_context;
    return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int count) {
    (void)cq, (void)count;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attributes) {
    (void)pd, (void)attributes;
    errno = EOPNOTSUPP;
    return NULL;
}

int ibv_destroy_srq(struct ibv_srq *srq) {
    (void)srq;
    return EINVAL;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attributes) {
    uint32_t number = 1;
    while (number < PAIRS && pairs[number])
        number++;
    if (number == PAIRS || attributes->qp_type != IBV_QPT_RC || attributes->cap.max_inline_data) {
        errno = EINVAL;
        return NULL;
    }
    struct pair *pair = new(sizeof *pair);
    pair->qp.context = pd->context;
    pair->qp.pd = pd;
    pair->qp.send_cq = attributes->send_cq;
    pair->qp.recv_cq = attributes->recv_cq;
    pair->qp.qp_num = number;
    pair->qp.qp_type = IBV_QPT_RC;
    pair->signal_all = attributes->sq_sig_all;
    pair->depth = attributes->cap.max_recv_wr;
    pair->receives = new((pair->depth + 1) * sizeof *pair->receives);
    pthread_spin_init(&pair->lock, PTHREAD_PROCESS_PRIVATE);
    pairs[number] = pair;
    return &pair->qp;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attributes, int mask) {
    if (mask & IBV_QP_STATE)
        qp->state = attributes->qp_state;
    if (mask & IBV_QP_DEST_QPN)
        ((struct pair *)qp)->peer = attributes->dest_qp_num;
    return 0;
}

int ibv_destroy_qp(struct ibv_qp *qp) {
    struct pair *pair = (struct pair *)qp;
    pairs[qp->qp_num] = NULL;
    free(pair->receives);
    free(pair);
    return 0;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attributes) {
    (void)pd, (void)attributes;
    errno = EOPNOTSUPP;
    return NULL;
}

int ibv_destroy_ah(struct ibv_ah *handle) {
    (void)handle;
    return EINVAL;
}
