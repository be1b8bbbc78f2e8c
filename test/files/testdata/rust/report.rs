// A plain WASI program for the tests, which looks at the files that it was granted.
use std::fs::{self, File, OpenOptions};
use std::io::{Error, Read, Seek, SeekFrom};

fn number<T>(result: Result<T, Error>) -> i32 {
    result.err().map_or(0, |e| e.raw_os_error().unwrap_or(-1))
}

fn names(dir: &str) -> Vec<String> {
    let mut list: Vec<String> = match fs::read_dir(dir) {
        Ok(entries) => entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect(),
        Err(e) => vec![e.to_string()],
    };
    list.sort();
    list
}

fn main() {
    let content = fs::read_to_string("/geo/cities.csv");
    let read = content.as_deref().unwrap_or("").to_string();
    let mut part = [0; 5];
    if let Ok(mut f) = File::open("/geo/cities.csv") {
        f.seek(SeekFrom::Start(6)).unwrap();
        f.read_exact(&mut part).unwrap();
    }
    let sum: u64 = fs::read("/geo/large").unwrap_or_default().iter().map(|b| u64::from(*b)).sum();
    if read.is_empty() {
        part = *b"     ";
    }
    println!(
        r#"{{"read":{:?},"errno":{},"root":{:?},"list":{:?},"many":{},"relative":{:?},"linked":{:?},"sum":{},"size":{},"middle":{:?},"none":{},"out":{},"passwd":{},"fifo":{},"write":{},"create":{},"mkdir":{},"remove":{}}}"#,
        read,
        number(content),
        names("/"),
        names("/geo"),
        names("/geo/many").len(),
        fs::read_to_string("geo/maps/world.json").unwrap_or_default(),
        fs::read_to_string("/geo/current/world.json").unwrap_or_default(),
        sum,
        fs::metadata("/geo/cities.csv").map_or(0, |m| m.len()),
        std::str::from_utf8(&part).unwrap(),
        number(fs::read("/geo/none")),
        number(fs::read("/geo/out")),
        number(fs::read("/etc/passwd")),
        number(fs::read("/geo/fifo")),
        number(OpenOptions::new().write(true).open("/geo/cities.csv")),
        number(File::create("/geo/new")),
        number(fs::create_dir("/geo/new")),
        number(fs::remove_file("/geo/cities.csv")),
    );
}
