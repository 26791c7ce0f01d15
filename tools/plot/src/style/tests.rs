use super::*;

const LIGHT_BACKGROUND: &str = "#ffffff";
const DARK_BACKGROUND: &str = "#14171b";

/// The least contrast of graphics (WCAG 2.1 §1.4.11).
const GRAPHICS: f64 = 3.0;
/// The least contrast of text (WCAG 2.1 §1.4.3).
const TEXT: f64 = 4.5;

/// Returns the values of a property: its fallback for light pages, and its value on dark ones.
fn colours(property: &str) -> [String; 2] {
    let after = |text: &str, mark: String| {
        let at = text
            .find(&mark)
            .unwrap_or_else(|| panic!("{mark} is in the stylesheet"));
        text[at + mark.len()..][..7].to_owned()
    };
    let (light, dark) = STYLESHEET.split_once("@media").expect("a dark part");
    [
        after(light, format!("var(--{property},")),
        after(dark, format!("--{property}:")),
    ]
}

fn palette() -> [Vec<String>; 2] {
    let pairs = (1..=8).map(|number| colours(&format!("courser-{number}")));
    let (light, dark) = pairs.map(|[light, dark]| (light, dark)).unzip();
    [light, dark]
}

/// Converts a colour to linear red, green and blue.
fn linear(colour: &str) -> [f64; 3] {
    [1, 3, 5].map(|at| {
        let byte = u8::from_str_radix(&colour[at..at + 2], 16).expect("hexadecimal");
        let share = f64::from(byte) / 255.0;
        match share <= 0.04045 {
            true => share / 12.92,
            false => ((share + 0.055) / 1.055).powf(2.4),
        }
    })
}

fn contrast(a: &str, b: &str) -> f64 {
    let luminance = |colour| {
        let [red, green, blue] = linear(colour);
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    };
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// The matrices of full colour vision, protanopia, deuteranopia and tritanopia, after Machado,
/// Oliveira and Fernandes (2009), severity 1.
const VISION: [[[f64; 3]; 3]; 4] = [
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    [
        [0.1523, 1.0526, -0.2049],
        [0.1145, 0.7863, 0.0992],
        [-0.0039, -0.0481, 1.0520],
    ],
    [
        [0.3673, 0.8606, -0.2280],
        [0.2801, 0.6725, 0.0474],
        [-0.0118, 0.0429, 0.9689],
    ],
    [
        [1.2555, -0.0767, -0.1788],
        [-0.0784, 0.9309, 0.1476],
        [0.0047, 0.6914, 0.3039],
    ],
];

fn times(matrix: &[[f64; 3]; 3], vector: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
}

/// Converts a colour to Oklab, where equal distances look about equally large.
fn oklab(light: [f64; 3]) -> [f64; 3] {
    const CONES: [[f64; 3]; 3] = [
        [0.412_221, 0.536_333, 0.051_446],
        [0.211_903, 0.680_700, 0.107_397],
        [0.088_302, 0.281_719, 0.629_979],
    ];
    const OPPONENTS: [[f64; 3]; 3] = [
        [0.210_454, 0.793_618, -0.004_072],
        [1.977_998, -2.428_592, 0.450_594],
        [0.025_904, 0.782_772, -0.808_676],
    ];
    times(
        &OPPONENTS,
        times(&CONES, light.map(|part| part.max(0.0))).map(f64::cbrt),
    )
}

fn distance(vision: &[[f64; 3]; 3], a: &str, b: &str) -> f64 {
    let (a, b) = (
        oklab(times(vision, linear(a))),
        oklab(times(vision, linear(b))),
    );
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).powi(2))
        .sum::<f64>()
        .sqrt()
}

#[test]
fn every_line_is_visible_in_both_modes() {
    let mut named = vec!["courser-bad", "courser-good", "courser-muted"];
    let numbers: Vec<_> = (1..=8).map(|number| format!("courser-{number}")).collect();
    named.extend(numbers.iter().map(String::as_str));
    for name in named {
        let [light, dark] = colours(name);
        assert!(
            contrast(&light, LIGHT_BACKGROUND) >= GRAPHICS,
            "{name} {light}"
        );
        assert!(
            contrast(&dark, DARK_BACKGROUND) >= GRAPHICS,
            "{name} {dark}"
        );
    }
}

#[test]
fn every_text_is_readable_in_both_modes() {
    for name in ["courser-text", "courser-dim"] {
        let [light, dark] = colours(name);
        assert!(contrast(&light, LIGHT_BACKGROUND) >= TEXT, "{name} {light}");
        assert!(contrast(&dark, DARK_BACKGROUND) >= TEXT, "{name} {dark}");
    }
}

#[test]
fn colours_differ_for_every_kind_of_vision() {
    for palette in palette() {
        for (index, a) in palette.iter().enumerate() {
            for b in &palette[index + 1..] {
                for (vision, matrix) in VISION.iter().enumerate() {
                    let distance = distance(matrix, a, b);
                    assert!(
                        distance > 0.09,
                        "{a} and {b} for vision {vision}: {distance:.3}"
                    );
                }
            }
        }
    }
}

#[test]
fn backgrounds_of_the_tests_match_the_stylesheet() {
    assert_eq!(
        colours("courser-background"),
        [LIGHT_BACKGROUND, DARK_BACKGROUND]
    );
}

#[test]
fn every_rule_is_scoped() {
    let light = STYLESHEET.split("@media").next().expect("a part");
    for rule in light.split_inclusive('}') {
        assert!(rule.starts_with(".courser-plot"), "{rule}");
    }
}
