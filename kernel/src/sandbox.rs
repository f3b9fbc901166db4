//! Giving up rights before the tree's code runs.
//!
//! Landlock takes away files and the network, seccomp system calls, and resource limits memory and
//! time. What the kernel here does not offer is reported, never passed over.

use std::collections::BTreeMap;
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
    RulesetStatus, Scope, path_beneath_rules,
};
use rustix::process::{Resource, Rlimit};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Newest rights asked for; an older kernel gives what it has.
const LANDLOCK: ABI = ABI::V6;

/// Where compilers and their headers are.
const TOOLS: [&str; 11] = [
    "/usr",
    "/bin",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.preload",
];

/// Limits of the compiler's process, generous for a second's work.
const COMPILE_CPU_S: u64 = 120;
const COMPILE_FILE_BYTES: u64 = 256 << 20;

/// What belongs to a compiler outside [`TOOLS`], beside the folder its program is in.
const BESIDE: [&str; 5] = ["", "../lib", "../lib64", "../libexec", "../include"];

/// For the worker that compiles: the tools, its own folder, no network.
pub(crate) fn for_compiler(
    memory_bytes: u64,
    work: &Path,
    program: &Path,
) -> Result<Vec<String>, Failure> {
    limit(Resource::As, memory_bytes)?;
    limit(Resource::Cpu, COMPILE_CPU_S)?;
    limit(Resource::Fsize, COMPILE_FILE_BYTES)?;
    limit(Resource::Core, 0)?;
    let all = AccessFs::from_all(LANDLOCK);
    let tools = path_beneath_rules(TOOLS, AccessFs::from_read(LANDLOCK));
    let home = program.canonicalize().ok().and_then(|p| p.parent().map(Path::to_owned));
    let beside = home.iter().flat_map(|home| BESIDE.iter().map(|folder| home.join(folder)));
    let beside = path_beneath_rules(beside, AccessFs::from_read(LANDLOCK));
    let own = path_beneath_rules([work, Path::new("/dev/null")], all);
    let rules = handled()?.add_rules(tools)?.add_rules(beside)?.add_rules(own)?;
    let mut notes = describe(&rules.restrict_self()?.ruleset);
    notes.extend(apply(denied()?)?);
    Ok(notes)
}

/// For the worker that replays, before it loads the object: that object, nothing else.
pub(crate) fn before_loading(
    memory_bytes: u64,
    cpu_s: u64,
    object: &Path,
) -> Result<Vec<String>, Failure> {
    limit(Resource::As, memory_bytes)?;
    limit(Resource::Cpu, cpu_s)?;
    limit(Resource::Fsize, 0)?;
    limit(Resource::Core, 0)?;
    limit(Resource::Nproc, 0)?;
    let object = path_beneath_rules([object], AccessFs::ReadFile);
    let mut notes = describe(&handled()?.add_rules(object)?.restrict_self()?.ruleset);
    notes.extend(apply(allowed(&[RUNNING, LOADING].concat(), Vec::new())?)?);
    Ok(notes)
}

/// For the worker that replays, before the object's first call: memory, and talking on `control`.
pub(crate) fn before_running(control: i32) -> Result<(), Failure> {
    let on_control = || condition(0, control.cast_unsigned());
    let anonymous = || condition(4, u32::MAX);
    let not_executable =
        |mask| SeccompCondition::new(2, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask), 0);
    let rules = vec![
        (libc::SYS_read, vec![SeccompRule::new(vec![on_control()?])?]),
        (libc::SYS_write, vec![SeccompRule::new(vec![on_control()?])?]),
        (
            libc::SYS_mmap,
            vec![SeccompRule::new(vec![anonymous()?, not_executable(libc::PROT_EXEC as u64)?])?],
        ),
        (
            libc::SYS_mprotect,
            vec![SeccompRule::new(vec![not_executable(libc::PROT_EXEC as u64)?])?],
        ),
    ];
    // Where this is not offered, `before_loading` has said so.
    apply(allowed(RUNNING, rules)?).map(|_| ())
}

fn condition(argument: u8, value: u32) -> Result<SeccompCondition, Failure> {
    Ok(SeccompCondition::new(
        argument,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::Eq,
        u64::from(value),
    )?)
}

fn limit(resource: Resource, value: u64) -> Result<(), Failure> {
    let hard = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let value = Some(value.min(hard));
    Ok(rustix::process::setrlimit(resource, Rlimit { current: value, maximum: value })?)
}

/// Every right to files, the network and other processes is handled, so what no rule gives is gone.
fn handled() -> Result<landlock::RulesetCreated, Failure> {
    let rules = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))?
        .handle_access(AccessNet::from_all(LANDLOCK))?
        .scope(Scope::from_all(LANDLOCK))?;
    Ok(rules.create()?)
}

fn describe(status: &RulesetStatus) -> Vec<String> {
    match status {
        RulesetStatus::FullyEnforced => Vec::new(),
        RulesetStatus::PartiallyEnforced => {
            vec!["this kernel's Landlock is older: some accesses to files or the network are held back by seccomp only".to_owned()]
        }
        RulesetStatus::NotEnforced => {
            vec![
                "this kernel has no Landlock: files and the network are held back by seccomp only"
                    .to_owned(),
            ]
        }
    }
}

/// What a replay needs: memory, and dying.
const RUNNING: &[i64] = &[
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_getrandom,
    libc::SYS_clock_gettime,
    libc::SYS_sched_yield,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigprocmask,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_tgkill,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// What loading the object and preparing for its signals needs besides.
const LOADING: &[i64] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_openat,
    libc::SYS_close,
    libc::SYS_fstat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    libc::SYS_newfstatat,
    libc::SYS_lseek,
    libc::SYS_pread64,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_fcntl,
    libc::SYS_getcwd,
    libc::SYS_sigaltstack,
    libc::SYS_rt_sigaction,
    libc::SYS_prctl,
    libc::SYS_seccomp,
];

/// Anything but these calls raises SIGSYS.
fn allowed(
    calls: &[i64],
    with_rules: Vec<(i64, Vec<SeccompRule>)>,
) -> Result<SeccompFilter, Failure> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        calls.iter().map(|call| (*call, Vec::new())).collect();
    rules.extend(with_rules);
    Ok(SeccompFilter::new(rules, SeccompAction::Trap, SeccompAction::Allow, arch()?)?)
}

/// A compiler needs many calls, but none of these.
fn denied() -> Result<SeccompFilter, Failure> {
    let calls = [
        libc::SYS_socket,
        libc::SYS_socketpair,
        libc::SYS_connect,
        libc::SYS_bind,
        libc::SYS_ptrace,
        libc::SYS_process_vm_writev,
        libc::SYS_bpf,
        libc::SYS_mount,
        libc::SYS_unshare,
        libc::SYS_setns,
        libc::SYS_keyctl,
        libc::SYS_io_uring_setup,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
    ];
    let rules = calls.iter().map(|call| (*call, Vec::new())).collect();
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    Ok(SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch()?)?)
}

fn arch() -> Result<TargetArch, Failure> {
    Ok(std::env::consts::ARCH.try_into()?)
}

/// A note when the kernel has no seccomp.
fn apply(filter: SeccompFilter) -> Result<Option<String>, Failure> {
    let program: BpfProgram = filter.try_into()?;
    match seccompiler::apply_filter(&program) {
        Ok(()) => Ok(None),
        Err(seccompiler::Error::Prctl(e) | seccompiler::Error::Seccomp(e))
            if matches!(e.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL)) =>
        {
            Ok(Some("this kernel has no seccomp: system calls are not held back".to_owned()))
        }
        Err(e) => Err(e.into()),
    }
}
