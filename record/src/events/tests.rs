//! The choice of events on trees of `format` files like those of several kernels.

use std::collections::BTreeSet;
use std::path::PathBuf;

use traces::event::{Device, FileId};

use super::*;
use crate::target::{Filesystem, TargetFile};

const DISK: Device = Device { major: 8, minor: 0 };
const PARTITION: Device = Device { major: 8, minor: 1 };
const WRITER: u32 = 4711;

const UP_TO_6_11: [&str; 2] =
    ["filemap/mm_filemap_add_to_page_cache", "filemap/mm_filemap_delete_from_page_cache"];
const SINCE_6_12: [&str; 3] =
    ["filemap/mm_filemap_get_pages", "filemap/mm_filemap_fault", "filemap/mm_filemap_map_pages"];

/// A directory of events, removed with this value.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new<'e>(events: impl IntoIterator<Item = &'e str>) -> Self {
        let tree = Self(tempfile::tempdir().expect("the temporary folder is writable"));
        for event in events {
            let fields = match event.split_once('/').map(|(system, _)| system) {
                Some("filemap" | "readahead") => "dev_t s_dev;\n\tfield:unsigned long i_ino;",
                Some("xfs") => "dev_t dev;\n\tfield:xfs_ino_t ino;",
                Some("task") => "pid_t pid;\n\tfield:u64 clone_flags;",
                _ => "dev_t dev;",
            };
            let folder = tree.0.path().join(event);
            std::fs::create_dir_all(&folder).expect("the folder is ours");
            std::fs::write(folder.join("format"), format!("\tfield:{fields}\n"))
                .expect("the folder is ours");
        }
        tree
    }

    /// A kernel up to 6.11, with or without XFS.
    fn linux_6_1(xfs: bool) -> Self {
        Self::new(UP_TO_6_11.into_iter().chain(BLOCK).chain(xfs.then_some(XFS_READ)))
    }

    fn linux_6_12() -> Self {
        let all = UP_TO_6_11.into_iter().chain(SINCE_6_12).chain(BLOCK).chain([XFS_READ]);
        Self::new(all.chain(["syscalls/sys_enter_read", "syscalls/sys_exit_read"]))
    }

    fn linux_6_18() -> Self {
        let all = UP_TO_6_11.into_iter().chain(SINCE_6_12).chain(READAHEAD).chain(BLOCK);
        let calls = ["syscalls/sys_enter_pread64", "syscalls/sys_enter_read"];
        Self::new(all.chain([XFS_READ, NEW_TASK]).chain(calls))
    }

    fn choose(&self, target: &Target) -> Result<Choice, RecordError> {
        self.choose_as(target, true)
    }

    fn choose_as(&self, target: &Target, numbers_known: bool) -> Result<Choice, RecordError> {
        choose(self.0.path(), target, Threads { writer: WRITER, numbers_known })
    }
}

fn filesystem(fs_type: &str) -> Target {
    Target {
        files: Vec::new(),
        filesystems: vec![Filesystem { device: PARTITION, fs_type: fs_type.to_owned() }],
        devices: BTreeSet::from([DISK, PARTITION]),
    }
}

fn file(fs_type: &str) -> Target {
    let id = FileId { device: PARTITION, inode: 131 };
    Target { files: vec![TargetFile { path: PathBuf::from("/f"), id }], ..filesystem(fs_type) }
}

fn names(choice: &Choice) -> BTreeSet<&str> {
    choice.events.iter().map(|event| &*event.path).collect()
}

fn filter<'c>(choice: &'c Choice, event: &str) -> Option<&'c str> {
    let event = choice.events.iter().find(|chosen| chosen.path == event).expect("it is chosen");
    event.filter.as_deref()
}

#[test]
fn reads_of_xfs_are_exact_and_calls_tell_their_open_files() {
    let tree = Tree::linux_6_18();
    let choice = tree.choose(&filesystem("xfs")).expect("everything is there");
    assert_eq!(choice.reads, Fidelity::Exact);
    assert_eq!(choice.notes, [""; 0]);
    assert!(names(&choice).contains(XFS_READ));
    assert!(READAHEAD.into_iter().chain(BLOCK).all(|event| names(&choice).contains(event)));
    for event in ["syscalls/sys_enter_read", NEW_TASK] {
        assert_eq!(filter(&choice, event), Some("common_pid > 4711"));
    }
    let contained = tree.choose_as(&filesystem("xfs"), false).expect("everything needed is there");
    assert_eq!(contained.reads, Fidelity::Exact);
    let needs_numbers = |name: &&str| name.starts_with("syscalls/") || name.starts_with("task/");
    assert!(!names(&contained).iter().any(needs_numbers));
}

#[test]
fn other_filesystems_are_exact_by_system_calls() {
    let tree = Tree::linux_6_18();
    let choice = tree.choose(&filesystem("ext4")).expect("everything is there");
    assert_eq!(choice.reads, Fidelity::Exact);
    assert!(!names(&choice).contains(XFS_READ));
    assert_eq!(filter(&choice, "syscalls/sys_enter_pread64"), Some("common_pid > 4711"));
}

#[test]
fn in_a_container_other_filesystems_are_recorded_to_the_page() {
    let tree = Tree::linux_6_18();
    let choice = tree.choose_as(&filesystem("ext4"), false).expect("everything needed is there");
    assert_eq!(choice.reads, Fidelity::Page);
    assert!(!names(&choice).iter().any(|name| name.starts_with("syscalls/")));
    assert_eq!(choice.notes.len(), 1, "{:?}", choice.notes);
}

#[test]
fn linux_6_12_has_reads_but_no_readahead_events() {
    let tree = Tree::linux_6_12();
    let choice = tree.choose(&filesystem("btrfs")).expect("everything needed is there");
    assert_eq!(choice.reads, Fidelity::Exact);
    assert!(!names(&choice).iter().any(|name| name.starts_with("readahead/")));
}

#[test]
fn linux_6_1_shows_reads_of_xfs_alone() {
    let exact = Tree::linux_6_1(true).choose(&filesystem("xfs")).expect("the insertions are there");
    assert_eq!(exact.reads, Fidelity::Exact);
    assert!(exact.notes[0].contains("mm_filemap_fault"), "{:?}", exact.notes);
    let ext4 = Tree::linux_6_1(true).choose(&filesystem("ext4")).expect("the insertions are there");
    assert_eq!(ext4.reads, Fidelity::Insertions);
    let unbuilt =
        Tree::linux_6_1(false).choose(&filesystem("xfs")).expect("the insertions are there");
    assert_eq!(unbuilt.reads, Fidelity::Insertions);
}

#[test]
fn without_insertions_there_is_nothing_to_record() {
    let error = Tree::new(BLOCK).choose(&filesystem("xfs")).expect_err("no filemap events");
    assert!(error.to_string().contains("mm_filemap_add_to_page_cache"), "{error}");
    assert!(!error.is_usage());
}

#[test]
fn a_network_filesystem_has_no_block_events() {
    let device = Device { major: 0, minor: 45 };
    let filesystems = vec![Filesystem { device, fs_type: "nfs4".to_owned() }];
    let target = Target { filesystems, ..Target::default() };
    let choice = Tree::linux_6_18().choose(&target).expect("everything needed is there");
    assert!(!names(&choice).iter().any(|name| name.starts_with("block/")));
    assert_eq!(choice.reads, Fidelity::Exact);
}

#[test]
fn filters_keep_the_target_and_leave_the_writer_out() {
    let tree = Tree::linux_6_18();
    let of_file = tree.choose(&file("xfs")).expect("everything is there");
    assert_eq!(
        filter(&of_file, FAULT),
        Some("(s_dev == 8388609 && i_ino == 131) && common_pid != 4711")
    );
    assert_eq!(
        filter(&of_file, XFS_READ),
        Some("(dev == 8388609 && ino == 131) && common_pid != 4711")
    );
    assert_eq!(filter(&of_file, BLOCK[0]), Some("(dev == 8388608 || dev == 8388609)"));
    let of_filesystem = tree.choose(&filesystem("xfs")).expect("everything is there");
    assert_eq!(filter(&of_filesystem, FAULT), Some("s_dev == 8388609 && common_pid != 4711"));
}

#[test]
fn everything_is_recorded_without_a_target() {
    let choice = Tree::linux_6_18().choose(&Target::default()).expect("everything is there");
    assert_eq!(filter(&choice, BLOCK[0]), None);
    assert_eq!(filter(&choice, FAULT), Some("common_pid != 4711"));
    assert!(
        names(&choice).contains(XFS_READ) && names(&choice).contains("syscalls/sys_enter_read")
    );
}
