//! Tables written and read back, whole and in part, and files that are not what they should be.

use columns::{Error, Table, Text, Writer};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

columns::record! {
    "example.cells/1";
    /// Every type a column can have.
    #[derive(Clone, Debug, PartialEq)]
    struct Cells {
        time_ns: i64,
        cpu: u32,
        small: i32,
        inode: u64,
        share: f64,
        is_read: bool,
        name: Text,
        note: String,
        maybe: Option<u64>,
        label: Option<Text>,
        folios: Vec<u64>,
        names: Vec<String>,
        sizes: Option<Vec<i64>>,
    }
}

columns::record! {
    "example.cells/1";
    /// Some of them.
    #[derive(Debug, PartialEq)]
    struct Part {
        folios: Vec<u64>,
        time_ns: i64,
    }
}

columns::record! {
    "example.cells/1";
    /// One that is there and some of a later version.
    #[derive(Debug, PartialEq)]
    struct Later {
        time_ns: i64,
        new: Option<i64>,
        news: Option<Vec<i64>>,
    }
}

columns::record! {
    "example.cells/1";
    /// One that must be there and is not.
    #[derive(Debug)]
    struct Missing {
        pid: i64,
    }
}

columns::record! {
    "example.cells/1";
    /// One that is there with another type.
    #[derive(Debug)]
    struct Other {
        time_ns: Option<i64>,
    }
}

columns::record! {
    "example.cells/2";
    /// Of the next version.
    #[derive(Debug)]
    struct Next {
        time_ns: i64,
    }
}

columns::record! {
    "example.other/1";
    /// Of another kind.
    #[derive(Debug)]
    struct Kind {
        time_ns: i64,
    }
}

fn write(rows: &[Cells]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), "test").expect("starts");
    for row in rows {
        writer.push(row.clone()).expect("takes a row");
    }
    writer.finish(&[("example.note", "seven rows".to_owned())]).expect("finishes")
}

fn read<R: columns::Record>(bytes: &[u8]) -> Result<Vec<R>, Error> {
    Table::open(bytes.to_vec(), "test")?.rows()?.collect()
}

/// Some rows, more than a group has.
fn many() -> Vec<Cells> {
    let row = |i: u32| Cells {
        time_ns: i64::from(i) * 1000,
        cpu: i % 7,
        small: -1,
        inode: u64::MAX,
        share: 0.5,
        is_read: i.is_multiple_of(2),
        name: Text::fixed("reader"),
        note: format!("row {}", i % 10),
        maybe: i.is_multiple_of(3).then_some(u64::from(i)),
        label: None,
        folios: (0..u64::from(i % 5)).collect(),
        names: Vec::new(),
        sizes: i.is_multiple_of(2).then(|| vec![i64::from(i); i as usize % 3]),
    };
    (0..300_000).map(row).collect()
}

fn cells() -> impl Strategy<Value = Cells> {
    let text = "[a-z/é]{0,8}";
    let numbers =
        (any::<i64>(), any::<u32>(), any::<i32>(), any::<u64>(), -1e9..1e9, any::<bool>());
    let texts = (text, text, option::of(any::<u64>()), option::of(text));
    let lists = (vec(any::<u64>(), 0..4), vec(text, 0..4), option::of(vec(any::<i64>(), 0..4)));
    (numbers, texts, lists).prop_map(|(numbers, texts, lists)| {
        let (time_ns, cpu, small, inode, share, is_read) = numbers;
        let (name, note, maybe, label) = texts;
        let (folios, names, sizes) = lists;
        let (name, label) = (Text::from(&*name), label.as_deref().map(Text::from));
        Cells {
            time_ns,
            cpu,
            small,
            inode,
            share,
            is_read,
            name,
            note,
            maybe,
            label,
            folios,
            names,
            sizes,
        }
    })
}

proptest! {
    #[test]
    fn rows_come_back_as_they_were(rows in vec(cells(), 0..40)) {
        prop_assert_eq!(read::<Cells>(&write(&rows)).expect("reads"), rows);
    }

    /// A changed byte is an error, or in a place that says nothing; rows are never others.
    #[test]
    fn damage_is_found(rows in vec(cells(), 1..20), at in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let mut bytes = write(&rows);
        let at = at.index(bytes.len());
        bytes[at] ^= 1_u8 << bit;
        if let Ok(found) = read::<Cells>(&bytes) {
            prop_assert_eq!(found, rows);
        }
    }

    #[test]
    fn any_bytes_are_an_error(bytes in vec(any::<u8>(), 0..200)) {
        prop_assert!(read::<Cells>(&bytes).is_err());
    }
}

#[test]
fn groups_are_read_one_after_the_other() {
    let rows = many();
    let bytes = write(&rows);
    let table = Table::open(bytes.clone(), "test").expect("opens");
    assert_eq!(table.row_count(), rows.len() as u64);
    assert_eq!(table.note("example.note"), Some("seven rows"));
    assert_eq!(table.schema(), "example.cells/1");
    assert!(read::<Cells>(&bytes).expect("reads") == rows);
}

#[test]
fn some_columns_can_be_read_alone() {
    let rows = many();
    let part: Vec<Part> = read(&write(&rows)).expect("reads");
    let expected = rows.into_iter().map(|row| Part { folios: row.folios, time_ns: row.time_ns });
    assert!(part.into_iter().eq(expected));
}

#[test]
fn groups_are_left_out_by_their_statistics() {
    let rows = many();
    let table = Table::open(write(&rows), "test").expect("opens");
    let late = |group: &columns::Group<'_>| {
        group.range("time_ns").is_none_or(|range| *range.end() >= 290_000_000)
    };
    let part: Vec<_> = table.rows_where::<Part>(late).expect("reads").collect();
    let first = part[0].as_ref().expect("a row").time_ns;
    assert_eq!((first, part.len()), (262_144_000, 300_000 - 262_144));
    // Numbers that do not fit are no range.
    let unknown = |group: &columns::Group<'_>| group.range("inode").is_none();
    assert_eq!(table.rows_where::<Part>(unknown).expect("reads").count(), rows.len());
}

#[test]
fn equal_rows_give_equal_bytes() {
    let rows = many();
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| write(&rows))
    };
    assert!(with(1) == with(4));
}

#[test]
fn columns_of_a_later_version_are_null() {
    let rows: Vec<Later> = read(&write(&many()[..2])).expect("reads");
    assert_eq!(rows, [0, 1000].map(|time_ns| Later { time_ns, new: None, news: None }));
}

/// What `R` is told of a table it cannot read.
fn refusal<R: columns::Record>() -> String {
    read::<R>(&write(&many()[..2])).map(|rows| rows.len()).expect_err("refused").to_string()
}

#[test]
fn other_tables_are_refused() {
    assert_eq!(
        refusal::<Next>(),
        "test: table `example.cells/1` is of another version than `example.cells/2`, which this one reads"
    );
    assert_eq!(
        refusal::<Kind>(),
        "test: expected a table `example.other/1`, found `example.cells/1`"
    );
    assert_eq!(
        refusal::<Missing>(),
        "test: column `pid`: expected REQUIRED INT64 pid;, found no such column"
    );
    assert_eq!(
        refusal::<Other>(),
        "test: column `time_ns`: expected OPTIONAL INT64 time_ns;, found REQUIRED INT64 time_ns;"
    );
}

#[test]
fn truncated_files_are_refused() {
    let bytes = write(&many()[..10]);
    for length in 0..bytes.len() {
        let error = read::<Cells>(&bytes[..length]).expect_err("cut");
        assert!(matches!(error, Error::Footer { .. }), "{length}: {error}");
    }
}
