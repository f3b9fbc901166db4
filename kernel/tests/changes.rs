//! Changes to a tree: those that need no hand edit, those that cannot be built, and those that end
//! badly when replayed.

mod common;

use std::time::{Duration, Instant};

use common::{Copy, build, fixture, impatient_worker, options, sequential, shown, worker};
use insta::assert_snapshot;
use kernel::{
    Access, Built, Decided, Error, Fault, InstanceSettings, Isolation, Options, Session, Stops,
    TaskId, Tree,
};
use traces::units::{ByteOffset, Order, PageIndex};

const READAHEAD: &str = "mm/readahead.c";
const PAGEMAP: &str = "include/linux/pagemap.h";

fn decisions(copy: &Copy) -> String {
    let session = Session::start(&build(copy.path()).unwrap(), &worker()).unwrap();
    shown(&sequential(&session, 16).unwrap())
}

fn unchanged() -> String {
    decisions(&Copy::of(&fixture()))
}

#[test]
fn a_field_in_readahead_control() {
    let copy = Copy::of(&fixture());
    copy.insert_after(PAGEMAP, "unsigned int _batch_count;", " bool _align_end;");
    copy.at_start_of(READAHEAD, "page_cache_async_ra", " ractl->_align_end = true;");
    assert_eq!(decisions(&copy), unchanged());
}

#[test]
fn a_field_in_file_ra_state() {
    let copy = Copy::of(&fixture());
    copy.insert_after("include/linux/fs.h", "loff_t prev_pos;", " unsigned int order;");
    copy.at_start_of(READAHEAD, "page_cache_async_ra", " ractl->ra->order += 2;");
    assert!(decisions(&copy).contains("window 32 +32 async 32 order 2\n"), "{}", decisions(&copy));
}

#[test]
fn a_helper_and_a_macro_in_pagemap_h() {
    let copy = Copy::of(&fixture());
    let new = "\n#define WINDOW_ORDERS(n) ((n) + 1)\n\
        static inline unsigned int larger(unsigned int order)\n{\n\treturn WINDOW_ORDERS(order);\n}\n";
    copy.insert_after(PAGEMAP, "#include <linux/fs.h>\n", new);
    copy.edit(READAHEAD, |text| {
        text.replace(
            "min_t(unsigned int, WINDOW_ORDER,",
            "min_t(unsigned int, larger(WINDOW_ORDER),",
        )
    });
    assert!(decisions(&copy).contains("folio 8 order 3"));
}

#[test]
fn the_folios_of_a_batch() {
    // As a kernel says it, and as later ones do.
    let headers =
        [("linux/pagevec.h", "PAGEVEC_SIZE\t2"), ("linux/folio_batch.h", "FOLIO_BATCH_SIZE 3")];
    let batches = |copy: &Copy| {
        let session = Session::start(&build(copy.path()).unwrap(), &worker()).unwrap();
        let settings = InstanceSettings { i_size: 1 << 20, ..InstanceSettings::default() };
        let mut instance = session.instance(settings).unwrap();
        let file = instance.open().unwrap();
        let stops = Stops { after_copies: true, ..Stops::NONE };
        let mut accesses: Vec<_> =
            (0..7).map(|page| Access::cached(PageIndex(page), Order(0))).collect();
        accesses.push(Access::read(file, ByteOffset(0), 7 << 12).in_task(TaskId(0), stops));
        let folios = instance.replay(&accesses).unwrap().of(7).find_map(|d| match d.what {
            Decided::Copied { folios, .. } => Some(folios),
            _ => None,
        });
        folios.unwrap()
    };
    let copy = Copy::of(&fixture());
    assert_eq!(batches(&copy), 7);
    for ((header, definition), folios) in headers.into_iter().zip([2, 3]) {
        copy.edit(&format!("include/{header}"), |_| format!("#define {definition}\n"));
        assert_eq!(batches(&copy), folios, "{header}");
    }
}

#[test]
fn an_include_the_tree_has_and_one_that_stands_in() {
    let copy = Copy::of(&fixture());
    copy.edit("include/linux/window.h", |_| {
        "#ifndef W_H\n#define W_H\nstatic inline unsigned int window_order(void)\n{\n\treturn 3;\n}\n#endif\n".to_owned()
    });
    copy.insert_after(
        READAHEAD,
        "#include <linux/kernel.h>\n",
        "#include <linux/window.h>\n#include <linux/mm.h>\n",
    );
    copy.edit(READAHEAD, |text| {
        text.replace("#define WINDOW_ORDER 2", "#define WINDOW_ORDER window_order()")
    });
    assert!(decisions(&copy).contains("folio 8 order 3"));
}

/// The error without the compiler's own words, which differ between compilers.
fn build_error(copy: &Copy) -> String {
    let error = build(copy.path()).unwrap_err().to_string();
    let ours = error.lines().filter(|line| !line.starts_with("  | "));
    ours.collect::<Vec<_>>().join("\n").replace(&copy.path().display().to_string(), "TREE")
}

/// The compiler's own words.
fn compiler_error(copy: &Copy) -> String {
    match build(copy.path()).unwrap_err() {
        Error::Compile { message, .. } => message,
        other => panic!("{other}"),
    }
}

#[test]
fn unknown_names_are_named() {
    let copy = Copy::of(&fixture());
    copy.at_start_of(READAHEAD, "page_cache_async_ra", " if (folio_test_lukewarm(folio)) return;");
    copy.at_start_of(READAHEAD, "force_page_cache_ra", " ractl->mapping->wb_err = EVEN_WORSE;");
    assert_snapshot!(build_error(&copy), @r#"
    TREE does not build in user space
      mm/readahead.c:58: `wb_err` is not provided; the stand-in of this structure in shim/objects.h needs this member
      mm/readahead.c:58: `EVEN_WORSE` is not provided; the stand-ins in shim/kernel.h need this constant, with the kernel's value
      mm/readahead.c:74: `folio_test_lukewarm` is not provided; the stand-ins in shim/ need this function or macro, with a meaning that is true in user space
    "#);
    assert!(compiler_error(&copy).contains("folio_test_lukewarm"));
}

#[test]
fn pointers_of_the_wrong_type_are_refused() {
    let copy = Copy::of(&fixture());
    copy.at_start_of(READAHEAD, "force_page_cache_ra", " struct folio *f = ractl->mapping;");
    let error = compiler_error(&copy);
    assert!(error.contains("mm/readahead.c:58:") && error.contains("incompatible"), "{error}");
}

#[test]
fn state_in_global_variables_is_refused() {
    let copy = Copy::of(&fixture());
    copy.insert_after(READAHEAD, "#define WINDOW_ORDER 2\n", "\nstatic unsigned long calls;\n");
    copy.at_start_of(READAHEAD, "force_page_cache_ra", " static int here; here++; calls++;");
    copy.edit(READAHEAD, |text| {
        text.replace(
            "read_window(ractl, nr_to_read, 0",
            "read_window(ractl, nr_to_read + calls + here, 0",
        )
    });
    assert_snapshot!(build_error(&copy), @"TREE keeps state in global variables, which replays would share: calls (mm/readahead.c:13), here");
}

#[test]
fn a_tree_without_readahead() {
    let copy = Copy::of(&fixture());
    std::fs::remove_file(copy.path().join("lib/xarray.c")).unwrap();
    assert_snapshot!(build_error(&copy), @"TREE has no lib/xarray.c: is it a kernel tree?");
}

#[test]
fn the_c_library_is_not_the_kernel() {
    let copy = Copy::of(&fixture());
    copy.insert_after(
        READAHEAD,
        "#define WINDOW_ORDER 2\n",
        "int open(const char *, int, ...); int socket(int, int, int);\n",
    );
    copy.at_start_of(READAHEAD, "force_page_cache_ra", " open(\"/tmp/x\", 1); socket(2, 1, 0);");
    assert_snapshot!(build_error(&copy), @"TREE uses open, socket, which kernel code cannot have");
}

#[test]
fn the_compiler_reads_no_other_files() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "a secret").unwrap();
    let copy = Copy::of(&fixture());
    let include = format!("\n#include \"{}\"\n", secret.path().display());
    copy.insert_after(READAHEAD, "#define WINDOW_ORDER 2\n", &include);
    let error = compiler_error(&copy);
    assert!(!error.contains("secret") && error.contains("ermission denied"), "{error}");
}

#[test]
fn paths_that_lead_out_of_the_tree() {
    let outside = tempfile::tempdir().unwrap();
    let name = outside.path().file_name().unwrap().to_str().unwrap().to_owned();
    let copy = Copy::of(&fixture());
    copy.insert_after(
        READAHEAD,
        "#include <linux/kernel.h>\n",
        &format!("#include <linux/../../../{name}/made.h>\n"),
    );
    assert!(build(copy.path()).is_err());
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);

    let copy = Copy::of(&fixture());
    std::fs::write(outside.path().join("secret"), "a secret").unwrap();
    std::fs::remove_file(copy.path().join(READAHEAD)).unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret"), copy.path().join(READAHEAD)).unwrap();
    assert!(build_error(&copy).ends_with("mm/readahead.c: a symbolic link out of the tree"));
}

/// What ends the replay of a tree whose readahead does `statement` on its first async trigger.
fn replay_error(statement: &str) -> Error {
    replay_error_in(statement, &worker())
}

fn replay_error_in(statement: &str, isolation: &Isolation) -> Error {
    let copy = Copy::of(&fixture());
    copy.at_start_of(READAHEAD, "page_cache_async_ra", &format!(" {statement}"));
    let session = Session::start(&build(copy.path()).unwrap(), isolation).unwrap();
    sequential(&session, 16).unwrap_err()
}

fn at_line_of_async(error: &Error) -> bool {
    let text = std::fs::read_to_string(fixture().join(READAHEAD)).unwrap();
    let line = text.lines().position(|l| l.starts_with("void page_cache_async_ra")).unwrap() + 2;
    error.to_string().contains(&format!("{READAHEAD}:{line}"))
}

#[test]
fn an_endless_loop() {
    let started = Instant::now();
    let patience = impatient_worker(Duration::from_secs(1));
    let error = replay_error_in("for (;;) barrier();", &patience);
    assert!(started.elapsed() < Duration::from_secs(20));
    assert!(
        matches!(&error, Error::Fault { access: 0, fault: Fault::Endless { .. }, .. }),
        "{error}"
    );
    assert!(at_line_of_async(&error), "{error}");
}

#[test]
fn a_null_dereference() {
    let error = replay_error("*(volatile int *)8 = 1;");
    let fault = Fault::Signal { name: "SIGSEGV", address: 8 };
    assert!(matches!(&error, Error::Fault { access: 0, fault: f, .. } if *f == fault), "{error}");
    assert!(at_line_of_async(&error), "{error}");
}

#[test]
fn a_null_dereference_inside_a_stand_in() {
    let error = replay_error("folio_clear_readahead((struct folio *)0);");
    assert!(matches!(&error, Error::Fault { fault: Fault::Signal { .. }, .. }), "{error}");
    assert!(at_line_of_async(&error), "{error}");
}

#[test]
fn a_bug_on() {
    let error = replay_error("BUG_ON(ractl->ra->size == 32);");
    let fault = Fault::Bug("ractl->ra->size == 32".to_owned());
    assert!(matches!(&error, Error::Fault { access: 0, fault: f, .. } if *f == fault), "{error}");
    assert!(at_line_of_async(&error), "{error}");
}

#[test]
fn a_recursion_without_end() {
    let error = replay_error(
        "volatile char a[4096]; a[0] = 1; page_cache_async_ra(ractl, folio, req_count + a[0]); a[1] = 1;",
    );
    assert!(
        matches!(&error, Error::Fault { fault: Fault::Signal { name: "SIGSEGV", .. }, .. }),
        "{error}"
    );
    assert!(at_line_of_async(&error), "{error}");
}

#[test]
fn all_the_memory() {
    let error = replay_error("for (;;) filemap_alloc_folio(0, 0, NULL);");
    assert!(
        matches!(
            &error,
            Error::Fault { fault: Fault::OutOfMemory { limit_bytes: Some(0x1000_0000) }, .. }
        ),
        "{error}"
    );
}

/// A tree that makes the system call with the number of `ra_pages`, without the C library, which the
/// build would refuse.
#[cfg(target_arch = "x86_64")]
fn caller_of_system_calls() -> Built {
    let statement = " long r; __asm__ volatile(\"syscall\" : \"=a\"(r) : \"a\"((long)ractl->ra->ra_pages), \
         \"D\"(2L), \"S\"(1L), \"d\"(0L) : \"rcx\", \"r11\", \"memory\");";
    let copy = Copy::of(&fixture());
    copy.at_start_of(READAHEAD, "page_cache_async_ra", statement);
    build(copy.path()).unwrap()
}

#[cfg(target_arch = "x86_64")]
fn error_of_system_call(built: &Built, number: libc::c_long) -> Error {
    let session = Session::start(built, &worker()).unwrap();
    let settings = InstanceSettings {
        i_size: 1 << 20,
        ra_pages: u32::try_from(number).unwrap(),
        ..InstanceSettings::default()
    };
    let mut instance = session.instance(settings).unwrap();
    let file = instance.open().unwrap();
    instance.replay(&[Access::read(file, ByteOffset(0), 4096)]).unwrap_err()
}

#[cfg(target_arch = "x86_64")]
#[test]
fn files_sockets_and_processes() {
    let built = caller_of_system_calls();
    for number in [
        libc::SYS_open,
        libc::SYS_openat,
        libc::SYS_creat,
        libc::SYS_socket,
        libc::SYS_fork,
        libc::SYS_execve,
        libc::SYS_ptrace,
        libc::SYS_kill,
    ] {
        let error = error_of_system_call(&built, number);
        let fault = Fault::SystemCall { number: u32::try_from(number).unwrap() };
        assert!(
            matches!(&error, Error::Fault { access: 0, fault: f, .. } if *f == fault),
            "{error}"
        );
        assert!(at_line_of_async(&error), "{error}");
    }
    let error = error_of_system_call(&built, libc::SYS_exit_group);
    assert!(matches!(&error, Error::Fault { access: 0, fault: Fault::Vanished(_), .. }), "{error}");
}

#[test]
fn a_fault_ends_the_session_but_not_the_program() {
    let copy = Copy::of(&fixture());
    copy.at_start_of(READAHEAD, "page_cache_async_ra", " *(volatile int *)8 = 1;");
    let session = Session::start(&build(copy.path()).unwrap(), &worker()).unwrap();
    assert!(matches!(sequential(&session, 1), Err(Error::Fault { .. })));
    assert!(matches!(sequential(&session, 1), Err(Error::Poisoned { what: "session" })));
}

#[test]
fn a_bug_on_in_this_process_ends_only_its_instance() {
    let copy = Copy::of(&fixture());
    copy.at_start_of(READAHEAD, "page_cache_async_ra", " BUG_ON(readahead_index(ractl) == 32);");
    let session = Session::start(&build(copy.path()).unwrap(), &Isolation::InProcess).unwrap();
    let error = sequential(&session, 16).unwrap_err();
    assert!(matches!(error, Error::Fault { access: 2, fault: Fault::Bug(_), .. }), "{error}");
    assert!(sequential(&session, 1).is_ok());
}

#[test]
fn a_patch_applied_with_fuzz_that_a_stand_in_hides_in_part() {
    let patch = tempfile::NamedTempFile::new().unwrap();
    let text = "\
> A letter around it.
> diff --git a/mm/readahead.c b/mm/readahead.c
> --- a/mm/readahead.c
> +++ b/mm/readahead.c
> @@ -20,7 +20,7 @@ something wrapped
> here
>  #include \"before.h\"
>  #include \"internal.h\"
>\u{20}
> -#define WINDOW_ORDER 2
> +#define WINDOW_ORDER 3
>\u{20}
>  void file_ra_state_init(struct file_ra_state *ra, struct address_space *mapping)
>  {
> --- a/mm/page_alloc.c
> +++ b/mm/page_alloc.c
> @@ -1 +1 @@
> -int a;
> +int b;
> --- a/include/linux/pagemap.h
> +++ b/include/linux/pagemap.h
> @@ -1,2 +1,3 @@
>  #ifndef TEST_PAGEMAP_H
>  #define TEST_PAGEMAP_H
> +#define folio_trylock(folio) true
";
    std::fs::write(patch.path(), text).unwrap();
    let tree = Tree::parse(&fixture().display().to_string()).unwrap();
    let options = Options { patch: Some(patch.path().to_owned()), ..options() };
    let built = Built::new(&tree, &options).unwrap();
    assert_snapshot!(built.notes().join("\n"), @r#"
    mm/readahead.c: Hunk #1 succeeded at 8 with fuzz 1 (offset -12 lines)
    include/linux/pagemap.h: Hunk #1 succeeded at 1 with fuzz 2
    mm/page_alloc.c: changed by the patch, but no part of the replay
    include/linux/pagemap.h: the patch changes `folio_trylock`, which the replay's own stand-in replaces
    "#);
    let session = Session::start(&built, &worker()).unwrap();
    assert!(shown(&sequential(&session, 1).unwrap()).contains("folio 0 order 3"));
}

#[test]
fn a_patch_that_adds_a_header() {
    let patch = tempfile::NamedTempFile::new().unwrap();
    let text = "\
--- a/mm/readahead.c
+++ b/mm/readahead.c
@@ -3,4 +3,5 @@
 #include <linux/pagemap.h>
 #include <linux/file.h>
+#include <linux/window.h>
 
 #define CREATE_TRACE_POINTS
@@ -9,5 +10,5 @@
 #include \"internal.h\"
 
-#define WINDOW_ORDER 2
+#define WINDOW_ORDER WINDOW_ORDER_OF_OURS
 
 void file_ra_state_init(struct file_ra_state *ra, struct address_space *mapping)
--- /dev/null
+++ b/include/linux/window.h
@@ -0,0 +1,4 @@
+#ifndef WINDOW_H
+#define WINDOW_H
+#define WINDOW_ORDER_OF_OURS 3
+#endif
";
    std::fs::write(patch.path(), text).unwrap();
    let tree = Tree::parse(&fixture().display().to_string()).unwrap();
    let options = Options { patch: Some(patch.path().to_owned()), ..options() };
    let built = Built::new(&tree, &options).unwrap();
    assert_eq!(built.notes(), [""; 0]);
    let session = Session::start(&built, &worker()).unwrap();
    assert!(shown(&sequential(&session, 1).unwrap()).contains("folio 0 order 3"));
}

#[test]
fn patches_that_do_not_apply() {
    let patch = tempfile::NamedTempFile::new().unwrap();
    let tree = Tree::parse(&fixture().display().to_string()).unwrap();
    let options = Options { patch: Some(patch.path().to_owned()), ..options() };
    let error = |text: &str| {
        std::fs::write(patch.path(), text).unwrap();
        let error = Built::new(&tree, &options).unwrap_err().to_string();
        error
            .replace(&patch.path().display().to_string(), "PATCH")
            .replace(&fixture().display().to_string(), "TREE")
    };
    assert_snapshot!(error("no diff"), @"PATCH holds no change in unified diff format");
    let error =
        error("--- a/mm/readahead.c\n+++ b/mm/readahead.c\n@@ -1,1 +1,1 @@\n-nothing\n+x\n");
    assert!(error.starts_with("PATCH does not apply to TREE: mm/readahead.c: "), "{error}");
    assert!(error.contains("Hunk #1 FAILED at 1"), "{error}");
}
