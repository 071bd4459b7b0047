//! The structures of `bindings.rs` against the C headers of rdma-core.
//!
//! The `-sys` crates for libibverbs want clang or cmake, so the compiler and the headers
//! (`libibverbs-dev`, `librdmacm-dev`) are asked directly. Without them the test says that it was skipped.

use crate::bindings::*;
use std::collections::BTreeMap;
use std::io::Write;
use std::mem::{align_of, offset_of, size_of};
use std::process::Command;

/// What our structures say and the C expressions that must say the same.
struct Claims(Vec<(String, String, usize)>);

macro_rules! claim {
    ($claims:ident, $type:ident whole: $($field:ident),*) => {
        let name = stringify!($type);
        let kind = if name == "ibv_gid" { "union" } else { "struct" };
        $claims.0.push((format!("sizeof {name}"), format!("sizeof({kind} {name})"), size_of::<$type>()));
        $claims.0.push((format!("alignof {name}"), format!("_Alignof({kind} {name})"), align_of::<$type>()));
        claim!($claims, $type: $($field),*);
    };
    ($claims:ident, $type:ident: $($field:ident),*) => {
        let name = stringify!($type);
        let kind = if name == "ibv_gid" { "union" } else { "struct" };
        $($claims.0.push((
            format!("{name}.{}", stringify!($field)),
            format!("offsetof({kind} {name}, {})", stringify!($field)),
            offset_of!($type, $field),
        ));)*
    };
}

macro_rules! numbers {
    ($claims:ident: $($name:ident),* $(,)?) => {
        $($claims.0.push((stringify!($name).into(), stringify!($name).into(), $name as usize));)*
    };
}

fn claims() -> Claims {
    let mut c = Claims(Vec::new());
    claim!(c, ibv_device_attr whole: fw_ver, node_guid, sys_image_guid, max_mr_size, page_size_cap, vendor_id,
        vendor_part_id, hw_ver, max_qp, max_qp_wr, device_cap_flags, max_sge, max_sge_rd, max_cq, max_cqe,
        max_mr, max_pd, max_qp_rd_atom, max_ee_rd_atom, max_res_rd_atom, max_qp_init_rd_atom,
        max_ee_init_rd_atom, atomic_cap, max_ee, max_rdd, max_mw, max_raw_ipv6_qp, max_raw_ethy_qp,
        max_mcast_grp, max_mcast_qp_attach, max_total_mcast_qp_attach, max_ah, max_fmr, max_map_per_fmr,
        max_srq, max_srq_wr, max_srq_sge, max_pkeys, local_ca_ack_delay, phys_port_cnt);
    claim!(c, ibv_port_attr whole: state, max_mtu, active_mtu, gid_tbl_len, port_cap_flags, max_msg_sz,
        bad_pkey_cntr, qkey_viol_cntr, pkey_tbl_len, lid, sm_lid, lmc, max_vl_num, sm_sl, subnet_timeout,
        init_type_reply, active_width, active_speed, phys_state, link_layer, flags, port_cap_flags2);
    claim!(c, ibv_context_ops whole: poll_cq, req_notify_cq, post_srq_recv, post_send, post_recv);
    claim!(c, ibv_context: device, ops, cmd_fd, async_fd, num_comp_vectors);
    claim!(c, ibv_pd whole: context, handle);
    claim!(c, ibv_mr whole: context, pd, addr, length, handle, lkey, rkey);
    claim!(c, ibv_comp_channel whole: context, fd, refcnt);
    claim!(c, ibv_cq: context, channel, cq_context, handle, cqe);
    claim!(c, ibv_srq: context, srq_context, pd, handle);
    claim!(c, ibv_qp: context, qp_context, pd, send_cq, recv_cq, srq, handle, qp_num, state, qp_type);
    claim!(c, ibv_qp_cap whole: max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data);
    claim!(c, ibv_qp_init_attr whole: qp_context, send_cq, recv_cq, srq, cap, qp_type, sq_sig_all);
    claim!(c, ibv_gid whole: raw);
    claim!(c, ibv_global_route whole: dgid, flow_label, sgid_index, hop_limit, traffic_class);
    claim!(c, ibv_ah_attr whole: grh, dlid, sl, src_path_bits, static_rate, is_global, port_num);
    claim!(c, ibv_qp_attr whole: qp_state, cur_qp_state, path_mtu, path_mig_state, qkey, rq_psn, sq_psn,
        dest_qp_num, qp_access_flags, cap, ah_attr, alt_ah_attr, pkey_index, alt_pkey_index,
        en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num,
        timeout, retry_cnt, rnr_retry, alt_port_num, alt_timeout, rate_limit);
    claim!(c, ibv_srq_attr whole: max_wr, max_sge, srq_limit);
    claim!(c, ibv_srq_init_attr whole: srq_context, attr);
    claim!(c, ibv_sge whole: addr, length, lkey);
    claim!(c, ibv_send_wr whole: wr_id, next, sg_list, num_sge, opcode, send_flags, imm_data, wr, qp_type);
    for (c_name, offset) in [
        ("wr.rdma.remote_addr", offset_of!(rdma_part, remote_addr)),
        ("wr.rdma.rkey", offset_of!(rdma_part, rkey)),
        ("wr.atomic.remote_addr", offset_of!(atomic_part, remote_addr)),
        ("wr.atomic.compare_add", offset_of!(atomic_part, compare_add)),
        ("wr.atomic.swap", offset_of!(atomic_part, swap)),
        ("wr.atomic.rkey", offset_of!(atomic_part, rkey)),
        ("wr.ud.ah", offset_of!(ud_part, ah)),
        ("wr.ud.remote_qpn", offset_of!(ud_part, remote_qpn)),
        ("wr.ud.remote_qkey", offset_of!(ud_part, remote_qkey)),
    ] {
        let offset = offset_of!(ibv_send_wr, wr) + offset;
        c.0.push((
            format!("ibv_send_wr.{c_name}"),
            format!("offsetof(struct ibv_send_wr, {c_name})"),
            offset,
        ));
    }
    claim!(c, ibv_recv_wr whole: wr_id, next, sg_list, num_sge);
    claim!(c, ibv_wc whole: wr_id, status, opcode, vendor_err, byte_len, imm_data, qp_num, src_qp, wc_flags,
        pkey_index, slid, sl, dlid_path_bits);
    claim!(c, ibv_async_event whole: element, event_type);
    claim!(c, rdma_ib_addr whole: sgid, dgid, pkey);
    claim!(c, rdma_addr whole: src_storage, dst_storage, addr);
    claim!(c, rdma_route whole: addr, path_rec, num_paths);
    claim!(c, rdma_event_channel whole: fd);
    claim!(c, rdma_cm_id: verbs, channel, context, qp, route, ps, port_num);
    claim!(c, rdma_conn_param whole: private_data, private_data_len, responder_resources, initiator_depth,
        flow_control, retry_count, rnr_retry_count, srq, qp_num);
    claim!(c, rdma_cm_event: id, listen_id, event, status, param);
    numbers!(c: RDMA_PS_TCP, RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ADDR_ERROR,
        RDMA_CM_EVENT_ROUTE_RESOLVED, RDMA_CM_EVENT_ROUTE_ERROR, RDMA_CM_EVENT_CONNECT_REQUEST,
        RDMA_CM_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_CONNECT_ERROR, RDMA_CM_EVENT_UNREACHABLE,
        RDMA_CM_EVENT_REJECTED, RDMA_CM_EVENT_DISCONNECTED,
        RDMA_CM_EVENT_DEVICE_REMOVAL);
    numbers!(c: IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_ERR, IBV_QPT_RC, IBV_QPT_UD,
        IBV_QP_STATE, IBV_QP_ACCESS_FLAGS, IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_QKEY, IBV_QP_AV,
        IBV_QP_PATH_MTU, IBV_QP_TIMEOUT, IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY, IBV_QP_RQ_PSN,
        IBV_QP_MAX_QP_RD_ATOMIC, IBV_QP_MIN_RNR_TIMER, IBV_QP_SQ_PSN, IBV_QP_MAX_DEST_RD_ATOMIC,
        IBV_QP_DEST_QPN, IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ,
        IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_ON_DEMAND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
        IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
        IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_SEND_FENCE, IBV_SEND_SIGNALED, IBV_SEND_INLINE, IBV_WC_SUCCESS,
        IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_QP_OP_ERR, IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR,
        IBV_WC_BAD_RESP_ERR, IBV_WC_LOC_ACCESS_ERR, IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_ACCESS_ERR,
        IBV_WC_REM_OP_ERR, IBV_WC_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_REM_ABORT_ERR,
        IBV_WC_RESP_TIMEOUT_ERR, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_GRH, IBV_WC_WITH_IMM, IBV_PORT_ACTIVE,
        IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR, IBV_EVENT_DEVICE_FATAL,
        IBV_LINK_LAYER_ETHERNET);
    c
}

#[test]
fn structures_are_those_of_the_c_headers() {
    let claims = claims();
    let mut program = String::from(
        "#include <stddef.h>\n#include <stdio.h>\n#include <infiniband/verbs.h>\n\
         #include <rdma/rdma_cma.h>\nint main(void) {\n",
    );
    for (name, expression, _) in &claims.0 {
        program.push_str(&format!("  printf(\"%s=%zu\\n\", \"{name}\", (size_t)({expression}));\n"));
    }
    program.push_str("  return 0;\n}\n");
    let folder = std::env::temp_dir().join(format!("offpath-verbs-layout-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (source, binary) = (folder.join("layout.c"), folder.join("layout"));
    std::fs::write(&source, program).unwrap();
    let compiled = Command::new("cc").arg("-o").arg(&binary).arg(&source).output();
    let said = match &compiled {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Some(format!("cc: {error}")),
    };
    let values = said.is_none().then(|| Command::new(&binary).output().unwrap());
    std::fs::remove_dir_all(&folder).unwrap();
    if let Some(said) = said {
        let headers = ["infiniband/verbs.h: No such", "rdma/rdma_cma.h: No such"];
        let missing = headers.iter().any(|header| said.contains(header)) || said.starts_with("cc:");
        assert!(missing, "the program of the layout check does not compile:\n{said}");
        // Written past the capture of output, so that it is seen.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: no C compiler or no rdma-core headers (install libibverbs-dev and librdmacm-dev)"
        );
        return;
    }
    let text = String::from_utf8(values.unwrap().stdout).unwrap();
    let said: BTreeMap<&str, usize> = text
        .lines()
        .map(|line| line.split_once('=').unwrap())
        .map(|(name, value)| (name, value.parse().unwrap()))
        .collect();
    assert_eq!(said.len(), claims.0.len());
    let wrong: Vec<_> = claims
        .0
        .iter()
        .filter(|(name, _, ours)| said[name.as_str()] != *ours)
        .map(|(name, _, ours)| format!("{name} is {} in C and {ours} here", said[name.as_str()]))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
