// Posts and polls requests of 64 B as a program written on libibverbs does: the measure of the verbs layer.
// `loop CASE COUNT`; crates/verbs/examples/instructions.rs has the same cases.
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 64, BATCH = 16, DEPTH = 64 };

static void fail(const char *what) {
    fprintf(stderr, "loop: %s\n", what);
    exit(1);
}

static struct ibv_qp *client, *server; // each with a completion queue of its own
static struct ibv_mr *mr;
static char buffer[2 * LENGTH] __attribute__((aligned(64)));

// Takes `count` completions, which must be successes; the last one's identifier.
static uint64_t take(struct ibv_qp *qp, int count) {
    struct ibv_wc wc[BATCH];
    uint64_t last = 0;
    while (count > 0) {
        int taken = ibv_poll_cq(qp->send_cq, BATCH, wc);
        if (taken < 0)
            fail("ibv_poll_cq");
        for (int i = 0; i < taken; i++) {
            if (wc[i].status != IBV_WC_SUCCESS)
                fail("a request failed");
            last = wc[i].wr_id;
        }
        count -= taken;
    }
    return last;
}

static void fill(struct ibv_send_wr *wr, struct ibv_sge *slice, uint64_t number, int opcode, int flags) {
    *slice = (struct ibv_sge){.addr = (uint64_t)buffer, .length = LENGTH, .lkey = mr->lkey};
    *wr = (struct ibv_send_wr){.wr_id = number, .sg_list = slice, .num_sge = 1, .opcode = opcode, .send_flags = flags};
    wr->wr.rdma.remote_addr = (uint64_t)buffer + LENGTH;
    wr->wr.rdma.rkey = mr->rkey;
}

static void post(struct ibv_send_wr *wr) {
    struct ibv_send_wr *bad;
    if (ibv_post_send(client, wr, &bad))
        fail("ibv_post_send");
}

static void one(uint64_t number) {
    struct ibv_send_wr wr;
    struct ibv_sge slice;
    fill(&wr, &slice, number, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED);
    post(&wr);
    if (take(client, 1) != number)
        fail("another request completed");
}

static void send_one(uint64_t number) {
    struct ibv_send_wr wr;
    struct ibv_sge slice, into = {.addr = (uint64_t)buffer + LENGTH, .length = LENGTH, .lkey = mr->lkey};
    struct ibv_recv_wr receive = {.wr_id = number, .sg_list = &into, .num_sge = 1}, *bad;
    if (ibv_post_recv(server, &receive, &bad))
        fail("ibv_post_recv");
    fill(&wr, &slice, number, IBV_WR_SEND, IBV_SEND_SIGNALED);
    post(&wr);
    if (take(client, 1) != number || take(server, 1) != number)
        fail("another request completed");
}

// BATCH linked requests, every one of them signaled or the last alone.
static void batch(uint64_t number, int quiet) {
    struct ibv_send_wr wr[BATCH];
    struct ibv_sge slices[BATCH];
    for (int i = 0; i < BATCH; i++) {
        int last = i == BATCH - 1;
        fill(&wr[i], &slices[i], number + i, IBV_WR_RDMA_READ, quiet && !last ? 0 : IBV_SEND_SIGNALED);
        wr[i].next = last ? NULL : &wr[i + 1];
    }
    post(wr);
    if (take(client, quiet ? 1 : BATCH) != number + BATCH - 1)
        fail("another request completed");
}

static struct ibv_qp *pair(struct ibv_pd *pd) {
    struct ibv_cq *cq = ibv_create_cq(pd->context, 4 * DEPTH, NULL, NULL, 0);
    if (!cq)
        fail("ibv_create_cq");
    struct ibv_qp_init_attr attributes = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {DEPTH, DEPTH, 1, 1, 0}};
    struct ibv_qp *qp = ibv_create_qp(pd, &attributes);
    if (!qp)
        fail("ibv_create_qp");
    return qp;
}

static void connect(struct ibv_qp *qp, struct ibv_qp *peer) {
    struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_RTR, .dest_qp_num = peer->qp_num};
    if (ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_DEST_QPN))
        fail("ibv_modify_qp");
    attributes.qp_state = IBV_QPS_RTS;
    if (ibv_modify_qp(qp, &attributes, IBV_QP_STATE))
        fail("ibv_modify_qp");
    qp->state = IBV_QPS_RTS;
}

int main(int count, char **arguments) {
    if (count != 3)
        fail("wants a case and a count");
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
    struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
    if (!pd)
        fail("no device");
    mr = ibv_reg_mr(pd, buffer, sizeof buffer, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    if (!mr)
        fail("ibv_reg_mr");
    client = pair(pd);
    server = pair(pd);
    connect(client, server);
    connect(server, client);
    uint64_t wanted = strtoull(arguments[2], NULL, 10);
    if (!strcmp(arguments[1], "read"))
        for (uint64_t i = 0; i < wanted; i++)
            one(i);
    else if (!strcmp(arguments[1], "send"))
        for (uint64_t i = 0; i < wanted; i++)
            send_one(i);
    else if (!strcmp(arguments[1], "batch") || !strcmp(arguments[1], "quiet"))
        for (uint64_t i = 0; i < wanted; i += BATCH)
            batch(i, arguments[1][0] == 'q');
    else
        fail("knows read, send, batch and quiet");
    return 0;
}
