"""Makes objects of soft0 by pyverbs and uses them: two connected queue pairs, an SRQ, a CQ, memory regions."""
import pyverbs.enums as e
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context, get_device_list
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

SIZE = 4096
REMOTE = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ


def completion(cq):
    """The next completion of the queue."""
    while True:
        n, found = cq.poll(1)
        if n:
            assert found[0].status == e.IBV_WC_SUCCESS, found[0]
            return found[0]


def attributes(ctx, peer):
    """What leads to the queue pair `peer` of the same port."""
    port = ctx.query_port(1)
    route = GlobalRoute(dgid=ctx.query_gid(1, 0), sgid_index=0)
    is_global = port.link_layer == e.IBV_LINK_LAYER_ETHERNET
    attr = QPAttr(port_num=1)
    attr.dest_qp_num = peer.qp_num
    attr.path_mtu = port.active_mtu
    attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
    attr.min_rnr_timer, attr.timeout, attr.retry_cnt, attr.rnr_retry = 12, 14, 7, 7
    attr.qp_access_flags = REMOTE
    attr.ah_attr = AHAttr(port_num=1, dlid=port.lid, is_global=is_global, gr=route)
    return attr


assert b"soft0" in [d.name for d in get_device_list()]
ctx = Context(name="soft0")
pd, cq = PD(ctx), CQ(ctx, 16)
mr, target = MR(pd, SIZE, REMOTE), MR(pd, SIZE, REMOTE)
srq = SRQ(pd, SrqInitAttr(SrqAttr(max_wr=8, max_sge=1)))
cap = QPCap(max_send_wr=8, max_recv_wr=8, max_send_sge=1, max_recv_sge=1)
a = QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=cap, sq_sig_all=1))
b = QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, srq=srq, cap=cap, sq_sig_all=1))
a.to_rts(attributes(ctx, b))
b.to_rts(attributes(ctx, a))

srq.post_recv(RecvWR(wr_id=7, sg=[SGE(target.buf, SIZE, target.lkey)], num_sge=1))
mr.write("sent", 4)
a.post_send(SendWR(wr_id=8, opcode=e.IBV_WR_SEND, num_sge=1, sg=[SGE(mr.buf, 4, mr.lkey)]))
assert {completion(cq).wr_id, completion(cq).wr_id} == {7, 8}
assert target.read(4, 0) == b"sent"

mr.write("written", 7)
request = SendWR(wr_id=9, opcode=e.IBV_WR_RDMA_WRITE, num_sge=1, sg=[SGE(mr.buf, 7, mr.lkey)])
request.set_wr_rdma(target.rkey, target.buf)
a.post_send(request)
assert completion(cq).wr_id == 9 and target.read(7, 0) == b"written"
for it in (a, b, srq, cq, mr, target, pd, ctx):
    it.close()
print("passed")
