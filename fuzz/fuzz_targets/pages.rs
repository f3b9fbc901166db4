//! Ring-buffer pages, behind the head of a trace.dat that describes one event of each shape.
#![no_main]

use libfuzzer_sys::fuzz_target;

const PAGE_BYTES: u32 = 4096;
/// Size of the data of the only CPU, whatever the file holds.
const DATA_BYTES: u64 = 1 << 20;

const FORMATS: [&str; 3] = [
    "name: block_rq_issue\nID: 1\n\
     \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
     \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
     \tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n\
     \tfield:__data_loc char[] rwbs;\toffset:28;\tsize:4;\tsigned:0;\n",
    "name: block_rq_complete\nID: 2\n\
     \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
     \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
     \tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n\
     \tfield:int error;\toffset:28;\tsize:4;\tsigned:1;\n\
     \tfield:__rel_loc char[] rwbs;\toffset:32;\tsize:4;\tsigned:0;\n",
    "name: sys_enter_read\nID: 3\n\
     \tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n\
     \tfield:unsigned int fd;\toffset:16;\tsize:8;\tsigned:0;\n",
];

fn text(file: &mut Vec<u8>, text: &str) {
    file.extend((text.len() as u64).to_le_bytes());
    file.extend(text.as_bytes());
}

fn head() -> Vec<u8> {
    let mut file = b"\x17\x08\x44tracing6\0\0\x08".to_vec();
    file.extend(PAGE_BYTES.to_le_bytes());
    file.extend(b"header_page\0");
    text(&mut file, "");
    file.extend(b"header_event\0");
    text(&mut file, "");
    file.extend((FORMATS.len() as u32).to_le_bytes());
    FORMATS.iter().for_each(|format| text(&mut file, format));
    // No other events, symbols or printk formats.
    file.extend([0; 12]);
    text(&mut file, "1 a\n");
    file.extend(1_u32.to_le_bytes());
    file.extend(b"flyrecord\0");
    let offset = file.len() as u64 + 16;
    file.extend(offset.to_le_bytes());
    file.extend(DATA_BYTES.to_le_bytes());
    file
}

fuzz_target!(|data: &[u8]| {
    let mut file = head();
    file.extend(data);
    let _ = parser::read(&file[..], "fuzz");
});
