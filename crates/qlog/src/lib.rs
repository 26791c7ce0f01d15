//! Records of the stack as qlog (JSON-SEQ), and qlog of any stack as numbers.
