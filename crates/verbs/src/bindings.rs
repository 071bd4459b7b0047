//! The parts of libibverbs and librdmacm that this crate uses, by their C names, and the loading of their
//! symbols.
//!
//! Posting, polling and arming are no symbols: they are calls through the context's table of
//! operations, which the device's provider fills. `layout.rs` checks every structure against the C
//! headers.
#![allow(non_camel_case_types, reason = "the names of C")]

use crate::VerbsError;
use libc::{c_char, c_int, c_uint, c_void, size_t, sockaddr, sockaddr_storage};

pub(crate) const IBV_QPS_INIT: c_uint = 1;
pub(crate) const IBV_QPS_RTR: c_uint = 2;
pub(crate) const IBV_QPS_RTS: c_uint = 3;
pub(crate) const IBV_QPS_ERR: c_uint = 6;

pub(crate) const IBV_QPT_RC: c_uint = 2;
pub(crate) const IBV_QPT_UD: c_uint = 4;

pub(crate) const IBV_QP_STATE: c_int = 1;
pub(crate) const IBV_QP_ACCESS_FLAGS: c_int = 1 << 3;
pub(crate) const IBV_QP_PKEY_INDEX: c_int = 1 << 4;
pub(crate) const IBV_QP_PORT: c_int = 1 << 5;
pub(crate) const IBV_QP_QKEY: c_int = 1 << 6;
pub(crate) const IBV_QP_AV: c_int = 1 << 7;
pub(crate) const IBV_QP_PATH_MTU: c_int = 1 << 8;
pub(crate) const IBV_QP_TIMEOUT: c_int = 1 << 9;
pub(crate) const IBV_QP_RETRY_CNT: c_int = 1 << 10;
pub(crate) const IBV_QP_RNR_RETRY: c_int = 1 << 11;
pub(crate) const IBV_QP_RQ_PSN: c_int = 1 << 12;
pub(crate) const IBV_QP_MAX_QP_RD_ATOMIC: c_int = 1 << 13;
pub(crate) const IBV_QP_MIN_RNR_TIMER: c_int = 1 << 15;
pub(crate) const IBV_QP_SQ_PSN: c_int = 1 << 16;
pub(crate) const IBV_QP_MAX_DEST_RD_ATOMIC: c_int = 1 << 17;
pub(crate) const IBV_QP_DEST_QPN: c_int = 1 << 20;

pub(crate) const IBV_ACCESS_LOCAL_WRITE: c_int = 1;
pub(crate) const IBV_ACCESS_REMOTE_WRITE: c_int = 2;
pub(crate) const IBV_ACCESS_REMOTE_READ: c_int = 4;
pub(crate) const IBV_ACCESS_REMOTE_ATOMIC: c_int = 8;
pub(crate) const IBV_ACCESS_ON_DEMAND: c_int = 64;

pub(crate) const IBV_WR_RDMA_WRITE: c_uint = 0;
pub(crate) const IBV_WR_RDMA_WRITE_WITH_IMM: c_uint = 1;
pub(crate) const IBV_WR_SEND: c_uint = 2;
pub(crate) const IBV_WR_SEND_WITH_IMM: c_uint = 3;
pub(crate) const IBV_WR_RDMA_READ: c_uint = 4;
pub(crate) const IBV_WR_ATOMIC_CMP_AND_SWP: c_uint = 5;
pub(crate) const IBV_WR_ATOMIC_FETCH_AND_ADD: c_uint = 6;

pub(crate) const IBV_SEND_FENCE: c_uint = 1;
pub(crate) const IBV_SEND_SIGNALED: c_uint = 2;
pub(crate) const IBV_SEND_INLINE: c_uint = 8;

pub(crate) const IBV_WC_SUCCESS: c_uint = 0;
pub(crate) const IBV_WC_LOC_LEN_ERR: c_uint = 1;
pub(crate) const IBV_WC_LOC_QP_OP_ERR: c_uint = 2;
pub(crate) const IBV_WC_LOC_PROT_ERR: c_uint = 4;
pub(crate) const IBV_WC_WR_FLUSH_ERR: c_uint = 5;
pub(crate) const IBV_WC_BAD_RESP_ERR: c_uint = 7;
pub(crate) const IBV_WC_LOC_ACCESS_ERR: c_uint = 8;
pub(crate) const IBV_WC_REM_INV_REQ_ERR: c_uint = 9;
pub(crate) const IBV_WC_REM_ACCESS_ERR: c_uint = 10;
pub(crate) const IBV_WC_REM_OP_ERR: c_uint = 11;
pub(crate) const IBV_WC_RETRY_EXC_ERR: c_uint = 12;
pub(crate) const IBV_WC_RNR_RETRY_EXC_ERR: c_uint = 13;
pub(crate) const IBV_WC_REM_ABORT_ERR: c_uint = 16;
pub(crate) const IBV_WC_RESP_TIMEOUT_ERR: c_uint = 20;

pub(crate) const IBV_WC_RECV_RDMA_WITH_IMM: c_uint = 129;
pub(crate) const IBV_WC_GRH: c_uint = 1;
pub(crate) const IBV_WC_WITH_IMM: c_uint = 2;

pub(crate) const IBV_PORT_ACTIVE: c_uint = 4;
pub(crate) const IBV_LINK_LAYER_ETHERNET: u8 = 2;

pub(crate) const IBV_EVENT_QP_FATAL: c_uint = 1;
pub(crate) const IBV_EVENT_QP_REQ_ERR: c_uint = 2;
pub(crate) const IBV_EVENT_QP_ACCESS_ERR: c_uint = 3;
pub(crate) const IBV_EVENT_DEVICE_FATAL: c_uint = 8;

pub(crate) const RDMA_PS_TCP: c_uint = 0x0106;

pub(crate) const RDMA_CM_EVENT_ADDR_RESOLVED: c_uint = 0;
pub(crate) const RDMA_CM_EVENT_ADDR_ERROR: c_uint = 1;
pub(crate) const RDMA_CM_EVENT_ROUTE_RESOLVED: c_uint = 2;
pub(crate) const RDMA_CM_EVENT_ROUTE_ERROR: c_uint = 3;
pub(crate) const RDMA_CM_EVENT_CONNECT_REQUEST: c_uint = 4;
pub(crate) const RDMA_CM_EVENT_CONNECT_RESPONSE: c_uint = 5;
pub(crate) const RDMA_CM_EVENT_CONNECT_ERROR: c_uint = 6;
pub(crate) const RDMA_CM_EVENT_UNREACHABLE: c_uint = 7;
pub(crate) const RDMA_CM_EVENT_REJECTED: c_uint = 8;
pub(crate) const RDMA_CM_EVENT_DISCONNECTED: c_uint = 10;
pub(crate) const RDMA_CM_EVENT_DEVICE_REMOVAL: c_uint = 11;

/// Only pointers to these pass.
pub(crate) enum ibv_device {}
pub(crate) enum ibv_ah {}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_device_attr {
    pub fw_ver: [c_char; 64],
    pub node_guid: u64,
    pub sys_image_guid: u64,
    pub max_mr_size: u64,
    pub page_size_cap: u64,
    pub vendor_id: u32,
    pub vendor_part_id: u32,
    pub hw_ver: u32,
    pub max_qp: c_int,
    pub max_qp_wr: c_int,
    pub device_cap_flags: c_uint,
    pub max_sge: c_int,
    pub max_sge_rd: c_int,
    pub max_cq: c_int,
    pub max_cqe: c_int,
    pub max_mr: c_int,
    pub max_pd: c_int,
    pub max_qp_rd_atom: c_int,
    pub max_ee_rd_atom: c_int,
    pub max_res_rd_atom: c_int,
    pub max_qp_init_rd_atom: c_int,
    pub max_ee_init_rd_atom: c_int,
    pub atomic_cap: c_uint,
    pub max_ee: c_int,
    pub max_rdd: c_int,
    pub max_mw: c_int,
    pub max_raw_ipv6_qp: c_int,
    pub max_raw_ethy_qp: c_int,
    pub max_mcast_grp: c_int,
    pub max_mcast_qp_attach: c_int,
    pub max_total_mcast_qp_attach: c_int,
    pub max_ah: c_int,
    pub max_fmr: c_int,
    pub max_map_per_fmr: c_int,
    pub max_srq: c_int,
    pub max_srq_wr: c_int,
    pub max_srq_sge: c_int,
    pub max_pkeys: u16,
    pub local_ca_ack_delay: u8,
    pub phys_port_cnt: u8,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_port_attr {
    pub state: c_uint,
    pub max_mtu: c_uint,
    pub active_mtu: c_uint,
    pub gid_tbl_len: c_int,
    pub port_cap_flags: u32,
    pub max_msg_sz: u32,
    pub bad_pkey_cntr: u32,
    pub qkey_viol_cntr: u32,
    pub pkey_tbl_len: u16,
    pub lid: u16,
    pub sm_lid: u16,
    pub lmc: u8,
    pub max_vl_num: u8,
    pub sm_sl: u8,
    pub subnet_timeout: u8,
    pub init_type_reply: u8,
    pub active_width: u8,
    pub active_speed: u8,
    pub phys_state: u8,
    pub link_layer: u8,
    pub flags: u8,
    pub port_cap_flags2: u16,
}

#[repr(C)]
pub(crate) struct ibv_context_ops {
    pub before_poll: [*mut c_void; 11],
    pub poll_cq: Option<unsafe extern "C" fn(*mut ibv_cq, c_int, *mut ibv_wc) -> c_int>,
    pub req_notify_cq: Option<unsafe extern "C" fn(*mut ibv_cq, c_int) -> c_int>,
    pub before_shared: [*mut c_void; 7],
    pub post_srq_recv:
        Option<unsafe extern "C" fn(*mut ibv_srq, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int>,
    pub before_send: [*mut c_void; 4],
    pub post_send:
        Option<unsafe extern "C" fn(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> c_int>,
    pub post_recv:
        Option<unsafe extern "C" fn(*mut ibv_qp, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int>,
    pub after: [*mut c_void; 5],
}

/// The mutex that follows is the library's own.
#[repr(C)]
pub(crate) struct ibv_context {
    pub device: *mut ibv_device,
    pub ops: ibv_context_ops,
    pub cmd_fd: c_int,
    pub async_fd: c_int,
    pub num_comp_vectors: c_int,
}

#[repr(C)]
pub(crate) struct ibv_pd {
    pub context: *mut ibv_context,
    pub handle: u32,
}

#[repr(C)]
pub(crate) struct ibv_mr {
    pub context: *mut ibv_context,
    pub pd: *mut ibv_pd,
    pub addr: *mut c_void,
    pub length: size_t,
    pub handle: u32,
    pub lkey: u32,
    pub rkey: u32,
}

#[repr(C)]
pub(crate) struct ibv_comp_channel {
    pub context: *mut ibv_context,
    pub fd: c_int,
    pub refcnt: c_int,
}

#[repr(C)]
pub(crate) struct ibv_cq {
    pub context: *mut ibv_context,
    pub channel: *mut ibv_comp_channel,
    pub cq_context: *mut c_void,
    pub handle: u32,
    pub cqe: c_int,
}

#[repr(C)]
pub(crate) struct ibv_srq {
    pub context: *mut ibv_context,
    pub srq_context: *mut c_void,
    pub pd: *mut ibv_pd,
    pub handle: u32,
}

#[repr(C)]
pub(crate) struct ibv_qp {
    pub context: *mut ibv_context,
    pub qp_context: *mut c_void,
    pub pd: *mut ibv_pd,
    pub send_cq: *mut ibv_cq,
    pub recv_cq: *mut ibv_cq,
    pub srq: *mut ibv_srq,
    pub handle: u32,
    pub qp_num: u32,
    pub state: c_uint,
    pub qp_type: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_qp_cap {
    pub max_send_wr: u32,
    pub max_recv_wr: u32,
    pub max_send_sge: u32,
    pub max_recv_sge: u32,
    pub max_inline_data: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_qp_init_attr {
    pub qp_context: *mut c_void,
    pub send_cq: *mut ibv_cq,
    pub recv_cq: *mut ibv_cq,
    pub srq: *mut ibv_srq,
    pub cap: ibv_qp_cap,
    pub qp_type: c_uint,
    pub sq_sig_all: c_int,
}

/// `union ibv_gid`: its other view, two 64-bit words, sets the alignment.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(crate) struct ibv_gid {
    pub raw: [u8; 16],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_global_route {
    pub dgid: ibv_gid,
    pub flow_label: u32,
    pub sgid_index: u8,
    pub hop_limit: u8,
    pub traffic_class: u8,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_ah_attr {
    pub grh: ibv_global_route,
    pub dlid: u16,
    pub sl: u8,
    pub src_path_bits: u8,
    pub static_rate: u8,
    pub is_global: u8,
    pub port_num: u8,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_qp_attr {
    pub qp_state: c_uint,
    pub cur_qp_state: c_uint,
    pub path_mtu: c_uint,
    pub path_mig_state: c_uint,
    pub qkey: u32,
    pub rq_psn: u32,
    pub sq_psn: u32,
    pub dest_qp_num: u32,
    pub qp_access_flags: c_uint,
    pub cap: ibv_qp_cap,
    pub ah_attr: ibv_ah_attr,
    pub alt_ah_attr: ibv_ah_attr,
    pub pkey_index: u16,
    pub alt_pkey_index: u16,
    pub en_sqd_async_notify: u8,
    pub sq_draining: u8,
    pub max_rd_atomic: u8,
    pub max_dest_rd_atomic: u8,
    pub min_rnr_timer: u8,
    pub port_num: u8,
    pub timeout: u8,
    pub retry_cnt: u8,
    pub rnr_retry: u8,
    pub alt_port_num: u8,
    pub alt_timeout: u8,
    pub rate_limit: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_srq_attr {
    pub max_wr: u32,
    pub max_sge: u32,
    pub srq_limit: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_srq_init_attr {
    pub srq_context: *mut c_void,
    pub attr: ibv_srq_attr,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_sge {
    pub addr: u64,
    pub length: u32,
    pub lkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct rdma_part {
    pub remote_addr: u64,
    pub rkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct atomic_part {
    pub remote_addr: u64,
    pub compare_add: u64,
    pub swap: u64,
    pub rkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ud_part {
    pub ah: *mut ibv_ah,
    pub remote_qpn: u32,
    pub remote_qkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union send_part {
    pub rdma: rdma_part,
    pub atomic: atomic_part,
    pub ud: ud_part,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_send_wr {
    pub wr_id: u64,
    pub next: *mut ibv_send_wr,
    pub sg_list: *mut ibv_sge,
    pub num_sge: c_int,
    pub opcode: c_uint,
    pub send_flags: c_uint,
    /// In network byte order.
    pub imm_data: u32,
    pub wr: send_part,
    pub qp_type: u32,
    /// Memory windows and segmentation, which are not used.
    pub rest: [u64; 6],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_recv_wr {
    pub wr_id: u64,
    pub next: *mut ibv_recv_wr,
    pub sg_list: *mut ibv_sge,
    pub num_sge: c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_wc {
    pub wr_id: u64,
    pub status: c_uint,
    pub opcode: c_uint,
    pub vendor_err: u32,
    pub byte_len: u32,
    /// In network byte order.
    pub imm_data: u32,
    pub qp_num: u32,
    pub src_qp: u32,
    pub wc_flags: c_uint,
    pub pkey_index: u16,
    pub slid: u16,
    pub sl: u8,
    pub dlid_path_bits: u8,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_async_event {
    /// A queue pair, completion queue, shared receive queue or port number, by the type.
    pub element: *mut c_void,
    pub event_type: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct rdma_ib_addr {
    pub sgid: ibv_gid,
    pub dgid: ibv_gid,
    pub pkey: u16,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct rdma_addr {
    pub src_storage: sockaddr_storage,
    pub dst_storage: sockaddr_storage,
    pub addr: rdma_ib_addr,
}

#[repr(C)]
pub(crate) struct rdma_route {
    pub addr: rdma_addr,
    pub path_rec: *mut c_void,
    pub num_paths: c_int,
}

#[repr(C)]
pub(crate) struct rdma_event_channel {
    pub fd: c_int,
}

/// Its beginning; the library makes them.
#[repr(C)]
pub(crate) struct rdma_cm_id {
    pub verbs: *mut ibv_context,
    pub channel: *mut rdma_event_channel,
    pub context: *mut c_void,
    pub qp: *mut ibv_qp,
    pub route: rdma_route,
    pub ps: c_uint,
    pub port_num: u8,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct rdma_conn_param {
    pub private_data: *const c_void,
    pub private_data_len: u8,
    pub responder_resources: u8,
    pub initiator_depth: u8,
    pub flow_control: u8,
    pub retry_count: u8,
    pub rnr_retry_count: u8,
    pub srq: u8,
    pub qp_num: u32,
}

/// Its beginning, with what it has for connections; the library makes them.
#[repr(C)]
pub(crate) struct rdma_cm_event {
    pub id: *mut rdma_cm_id,
    pub listen_id: *mut rdma_cm_id,
    pub event: c_uint,
    pub status: c_int,
    pub param: rdma_conn_param,
}

macro_rules! symbols {
    ($type:ident of $file:expr; $($name:ident: fn($($argument:ty),*) -> $result:ty,)*) => {
        /// The loaded library. Its functions stay valid as long as it lives.
        pub(crate) struct $type {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> $result,)*
            _library: libloading::Library,
        }

        impl $type {
            fn symbols(library: libloading::Library) -> Result<$type, VerbsError> {
                Ok($type {
                    $($name: {
                        let name = stringify!($name);
                        // SAFETY: the library's headers declare the symbol with this signature.
                        let symbol = unsafe { library.get(name.as_bytes()) };
                        *symbol.map_err(|error| VerbsError::Symbol {
                            library: $file,
                            symbol: name,
                            reason: error.to_string(),
                        })?
                    },)*
                    _library: library,
                })
            }
        }
    };
}

symbols! {
    Library of LIBRARY;
    ibv_get_device_list: fn(*mut c_int) -> *mut *mut ibv_device,
    ibv_free_device_list: fn(*mut *mut ibv_device) -> (),
    ibv_get_device_name: fn(*mut ibv_device) -> *const c_char,
    ibv_open_device: fn(*mut ibv_device) -> *mut ibv_context,
    ibv_close_device: fn(*mut ibv_context) -> c_int,
    ibv_query_device: fn(*mut ibv_context, *mut ibv_device_attr) -> c_int,
    ibv_query_port: fn(*mut ibv_context, u8, *mut ibv_port_attr) -> c_int,
    ibv_query_gid: fn(*mut ibv_context, u8, c_int, *mut ibv_gid) -> c_int,
    ibv_get_async_event: fn(*mut ibv_context, *mut ibv_async_event) -> c_int,
    ibv_ack_async_event: fn(*mut ibv_async_event) -> (),
    ibv_alloc_pd: fn(*mut ibv_context) -> *mut ibv_pd,
    ibv_dealloc_pd: fn(*mut ibv_pd) -> c_int,
    ibv_reg_mr: fn(*mut ibv_pd, *mut c_void, size_t, c_int) -> *mut ibv_mr,
    ibv_dereg_mr: fn(*mut ibv_mr) -> c_int,
    ibv_create_comp_channel: fn(*mut ibv_context) -> *mut ibv_comp_channel,
    ibv_destroy_comp_channel: fn(*mut ibv_comp_channel) -> c_int,
    ibv_create_cq: fn(*mut ibv_context, c_int, *mut c_void, *mut ibv_comp_channel, c_int) -> *mut ibv_cq,
    ibv_destroy_cq: fn(*mut ibv_cq) -> c_int,
    ibv_get_cq_event: fn(*mut ibv_comp_channel, *mut *mut ibv_cq, *mut *mut c_void) -> c_int,
    ibv_ack_cq_events: fn(*mut ibv_cq, c_uint) -> (),
    ibv_create_srq: fn(*mut ibv_pd, *mut ibv_srq_init_attr) -> *mut ibv_srq,
    ibv_destroy_srq: fn(*mut ibv_srq) -> c_int,
    ibv_create_qp: fn(*mut ibv_pd, *mut ibv_qp_init_attr) -> *mut ibv_qp,
    ibv_modify_qp: fn(*mut ibv_qp, *mut ibv_qp_attr, c_int) -> c_int,
    ibv_destroy_qp: fn(*mut ibv_qp) -> c_int,
    ibv_create_ah: fn(*mut ibv_pd, *mut ibv_ah_attr) -> *mut ibv_ah,
    ibv_destroy_ah: fn(*mut ibv_ah) -> c_int,
}

symbols! {
    ConnectionLibrary of CONNECTION_LIBRARY;
    rdma_create_event_channel: fn() -> *mut rdma_event_channel,
    rdma_destroy_event_channel: fn(*mut rdma_event_channel) -> (),
    rdma_create_id: fn(*mut rdma_event_channel, *mut *mut rdma_cm_id, *mut c_void, c_uint) -> c_int,
    rdma_destroy_id: fn(*mut rdma_cm_id) -> c_int,
    rdma_bind_addr: fn(*mut rdma_cm_id, *mut sockaddr) -> c_int,
    rdma_listen: fn(*mut rdma_cm_id, c_int) -> c_int,
    rdma_resolve_addr: fn(*mut rdma_cm_id, *mut sockaddr, *mut sockaddr, c_int) -> c_int,
    rdma_resolve_route: fn(*mut rdma_cm_id, c_int) -> c_int,
    rdma_connect: fn(*mut rdma_cm_id, *mut rdma_conn_param) -> c_int,
    rdma_establish: fn(*mut rdma_cm_id) -> c_int,
    rdma_accept: fn(*mut rdma_cm_id, *mut rdma_conn_param) -> c_int,
    rdma_reject: fn(*mut rdma_cm_id, *const c_void, u8) -> c_int,
    rdma_disconnect: fn(*mut rdma_cm_id) -> c_int,
    rdma_get_cm_event: fn(*mut rdma_event_channel, *mut *mut rdma_cm_event) -> c_int,
    rdma_ack_cm_event: fn(*mut rdma_cm_event) -> c_int,
    rdma_init_qp_attr: fn(*mut rdma_cm_id, *mut ibv_qp_attr, *mut c_int) -> c_int,
}

const LIBRARY: &str = "libibverbs.so.1";
const CONNECTION_LIBRARY: &str = "librdmacm.so.1";

impl Library {
    pub(crate) fn load() -> Result<Library, VerbsError> {
        // SAFETY: loading libibverbs runs its initialisers, which only set up tables.
        let library = unsafe { libloading::Library::new(LIBRARY) };
        let library =
            library.map_err(|error| VerbsError::Library { library: LIBRARY, reason: error.to_string() })?;
        Library::symbols(library)
    }
}

impl ConnectionLibrary {
    pub(crate) fn load() -> Result<ConnectionLibrary, VerbsError> {
        ConnectionLibrary::open(CONNECTION_LIBRARY)
    }

    fn open(name: &str) -> Result<ConnectionLibrary, VerbsError> {
        // SAFETY: loading librdmacm runs its initialisers, which only set up tables.
        let library = unsafe { libloading::Library::new(name) };
        let library = library.map_err(|error| VerbsError::ConnectionLibrary {
            library: CONNECTION_LIBRARY,
            reason: error.to_string(),
        })?;
        ConnectionLibrary::symbols(library)
    }
}

/// A zeroed structure of C.
pub(crate) fn zeroed<T: Copy>() -> T {
    // SAFETY: used for the structures of this file alone, of integers and raw pointers, for which all
    // zeroes are a value.
    unsafe { std::mem::zeroed() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_named_with_its_package() {
        let missing = ConnectionLibrary::open("libnone-of-this-name.so.1").err();
        assert!(matches!(missing, Some(VerbsError::ConnectionLibrary { library: CONNECTION_LIBRARY, .. })));
        let text = missing.map(|error| error.to_string()).unwrap_or_default();
        assert!(text.contains("install the package librdmacm1"), "{text}");
        // A library that is there, but another one.
        let other = ConnectionLibrary::open("libc.so.6").err();
        assert!(matches!(other, Some(VerbsError::Symbol { symbol: "rdma_create_event_channel", .. })));
    }
}
