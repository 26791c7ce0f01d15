//! `courser-adversary`: lists attacks.

fn main() {
    for plan in courser_adversary::attacks::ALL {
        println!("{} {}", plan.name, plan.labels.join(","));
    }
}
