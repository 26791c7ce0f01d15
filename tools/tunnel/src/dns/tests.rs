use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// A file that is removed at the end.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("courser-resolv-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.0).expect("a file")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn servers() -> Vec<IpAddr> {
    ["10.0.0.53", "fd00::53"]
        .map(|it| it.parse().expect(it))
        .to_vec()
}

const BEFORE: &str = "# of the network\nnameserver 192.0.2.53\nsearch example.org\n";

#[test]
fn previous_name_servers_return() {
    let place = Place::new();
    fs::write(&place.0, BEFORE).expect("a file");
    let file = File::write(&place.0, &servers(), "courser0").expect("written");
    let text = place.text();
    assert!(
        text.contains("\nnameserver 10.0.0.53\nnameserver fd00::53\n"),
        "{text}"
    );
    assert!(!text.contains("\nnameserver 192.0.2.53"), "{text}");
    drop(file);
    assert_eq!(place.text(), BEFORE);
}

#[test]
fn content_of_another_program_remains() {
    let place = Place::new();
    fs::write(&place.0, BEFORE).expect("a file");
    let file = File::write(&place.0, &servers(), "courser0").expect("written");
    assert!(!file.is_replaced());
    fs::write(&place.0, "nameserver 198.51.100.53\n").expect("a file");
    assert!(file.is_replaced());
    drop(file);
    assert_eq!(place.text(), "nameserver 198.51.100.53\n");
}

/// A tunnel that was killed has kept the content in the file.
#[test]
fn next_tunnel_restores_what_a_killed_one_has_left() {
    let place = Place::new();
    fs::write(&place.0, BEFORE).expect("a file");
    std::mem::forget(File::write(&place.0, &servers(), "courser0").expect("written"));
    let file = File::write(&place.0, &servers(), "courser1").expect("written");
    drop(file);
    assert_eq!(place.text(), BEFORE);
}

/// The loopback interface stands for the device of another tunnel that runs.
#[test]
fn name_servers_of_another_tunnel_remain_while_it_runs() {
    let place = Place::new();
    fs::write(&place.0, BEFORE).expect("a file");
    let first = File::write(&place.0, &servers(), "lo").expect("written");
    let of_first = place.text();
    drop(File::write(&place.0, &servers()[..1], "courser1").expect("written"));
    assert_eq!(place.text(), of_first);
    // One that ends later than the first restores what was before both.
    let second = File::write(&place.0, &servers(), "courser1").expect("written");
    std::mem::forget(File::write(&place.0, &servers(), "courser2").expect("written"));
    drop(first);
    let text = place.text();
    assert!(text.contains("courser2"), "{text}");
    std::mem::forget(second);
    drop(File::write(&place.0, &servers(), "courser3").expect("written"));
    assert_eq!(place.text(), of_first);
}

#[test]
fn file_of_a_tunnel_that_ended_first_is_not_restored() {
    let place = Place::new();
    fs::write(&place.0, BEFORE).expect("a file");
    let first = File::write(&place.0, &servers(), "courser0").expect("written");
    let of_first = place.text();
    let second = File {
        path: place.0.clone(),
        previous: of_first.into_bytes(),
        written: "nameserver 192.0.2.7\n".to_owned(),
    };
    fs::write(&place.0, &second.written).expect("a file");
    drop(first);
    drop(second);
    assert_eq!(place.text(), BEFORE);
}
