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
    fs::write(&place.0, "nameserver 198.51.100.53\n").expect("a file");
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
