//! The implementations, and the detection of those that the processor can run.

use std::fmt;

/// An implementation of AES-GCM for a set of instructions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Kernel {
    /// x86-64 with AVX-512, VAES and VPCLMULQDQ: four blocks in each instruction. Intel since Ice Lake,
    /// AMD since Zen 4.
    Avx512,
    /// x86-64 with AVX2, VAES and VPCLMULQDQ: two blocks in each instruction. AMD since Zen 3, Intel since
    /// Alder Lake.
    Vaes,
    /// x86-64 with AVX, AES-NI and PCLMULQDQ: one block in each instruction.
    AesNi,
    /// aarch64 with the AES and PMULL instructions of Armv8: one block in each instruction.
    ArmAes,
}

impl Kernel {
    /// The kernels for the architecture of this build, the fastest first.
    pub const ALL: &'static [Self] = if cfg!(target_arch = "x86_64") {
        &[Self::Avx512, Self::Vaes, Self::AesNi]
    } else if cfg!(target_arch = "aarch64") {
        &[Self::ArmAes]
    } else {
        &[]
    };

    /// Returns the fastest kernel that the processor can run, of those whose speed was measured.
    pub fn best() -> Option<Self> {
        let mut kernels = Self::ALL.iter().copied();
        kernels.find(|kernel| kernel.is_measured() && kernel.is_available())
    }

    /// Returns true if the kernel was measured to be faster than AWS-LC on the processors that it is for.
    fn is_measured(self) -> bool {
        !matches!(self, Self::ArmAes)
    }

    /// Returns true if the processor and the operating system support the instructions.
    pub fn is_available(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            let has_aes = is_x86_feature_detected!("avx")
                && is_x86_feature_detected!("aes")
                && is_x86_feature_detected!("pclmulqdq");
            let has_wide_aes = has_aes
                && is_x86_feature_detected!("vaes")
                && is_x86_feature_detected!("vpclmulqdq");
            match self {
                Self::AesNi => has_aes,
                Self::Vaes => has_wide_aes && is_x86_feature_detected!("avx2"),
                Self::Avx512 => {
                    has_wide_aes
                        && is_x86_feature_detected!("avx512f")
                        && is_x86_feature_detected!("avx512bw")
                        && is_x86_feature_detected!("avx512vl")
                }
                Self::ArmAes => false,
            }
        }
        #[cfg(target_arch = "aarch64")]
        {
            cfg!(target_endian = "little")
                && self == Self::ArmAes
                && std::arch::is_aarch64_feature_detected!("aes")
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        false
    }

    /// Returns the common names of the instruction sets, such as `VAES with AVX2`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "VAES with AVX-512",
            Self::Vaes => "VAES with AVX2",
            Self::AesNi => "AES-NI",
            Self::ArmAes => "AES of Armv8",
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
