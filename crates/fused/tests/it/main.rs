//! Every kernel against AWS-LC, and against published vectors.

mod differential;
mod generator;
mod vectors;

use courser_fused::Kernel;

/// Returns the kernels that this processor can run, and reports each that it cannot.
fn kernels() -> Vec<Kernel> {
    let (available, missing): (Vec<_>, Vec<_>) = Kernel::ALL
        .iter()
        .copied()
        .partition(|kernel| kernel.is_available());
    for kernel in missing {
        // Past the capture of output, so that CI counts it.
        let line = format!("SKIPPED tests of {kernel}: the processor lacks its instructions\n");
        let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
    }
    available
}
