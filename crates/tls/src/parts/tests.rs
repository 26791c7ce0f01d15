use super::*;
use crate::testing::{Authority, connect, drive, options_of, start};
use crate::{Identity, TlsClient, TlsServer, client_config, server_config};

/// Runs a handshake with this policy and this identity of the client. Returns the chain that the server
/// has seen, or the alert of the failure.
fn handshake(
    policy: ClientAuthentication,
    identity: Option<Identity>,
) -> Result<Option<Vec<Vec<u8>>>, Option<u8>> {
    let root = Authority::new("root");
    let mut options = options_of(&root);
    options.0.identity = identity;
    let mut parts = ServerParts::new(ClientAuthentication::Off).unwrap();
    parts.set_clients(policy).unwrap();
    let server = parts.build(&server_config(options.1).unwrap()).unwrap();
    let parts = ClientParts::new(Trust::Roots(root.roots())).unwrap();
    let client = parts.build(&client_config(options.0).unwrap()).unwrap();
    let client = TlsClient::new(client).unwrap();
    let (mut client, mut server) = start(&client, &TlsServer::new(server).unwrap());
    match drive(&mut client, &mut server) {
        Ok(()) => Ok(server.session.peer_certificates()),
        Err(error) => Err(error.alert),
    }
}

#[test]
fn each_policy_requests_and_verifies_client_certificates() {
    let clients = Authority::new("clients");
    let (known, other) = (
        clients.identity("known"),
        Authority::new("others").identity("other"),
    );
    let chain = vec![known.chain[0].to_vec()];
    let again = || {
        Some(Identity {
            chain: known.chain.clone(),
            key: known.key.clone_key(),
        })
    };
    let optional = || ClientAuthentication::Optional(clients.roots());
    let required = || ClientAuthentication::Required(clients.roots());
    assert_eq!(handshake(ClientAuthentication::Off, again()), Ok(None));
    assert_eq!(handshake(optional(), again()), Ok(Some(chain.clone())));
    assert_eq!(handshake(optional(), None), Ok(None));
    assert_eq!(handshake(required(), again()), Ok(Some(chain)));
    // certificate_required, and unknown_ca.
    assert_eq!(handshake(required(), None), Err(Some(116)));
    let of_others = Some(Identity {
        chain: other.chain.clone(),
        key: other.key.clone_key(),
    });
    assert_eq!(handshake(required(), of_others), Err(Some(48)));
    assert_eq!(handshake(optional(), Some(other)), Err(Some(48)));
}

#[test]
fn policy_without_roots_is_refused() {
    let empty = ClientAuthentication::Required(rustls::RootCertStore::empty());
    let error = ServerParts::new(empty).unwrap_err();
    assert!(matches!(error, TlsConfigError::Credentials(_)), "{error:?}");
}

#[test]
fn built_configurations_resume_sessions() {
    let root = Authority::new("root");
    let options = options_of(&root);
    let parts = ServerParts::new(ClientAuthentication::Off).unwrap();
    let server = parts.build(&server_config(options.1).unwrap()).unwrap();
    let parts = ClientParts::new(Trust::Roots(root.roots())).unwrap();
    let client = parts.build(&client_config(options.0).unwrap()).unwrap();
    let (client, server) = (
        TlsClient::new(client).unwrap(),
        TlsServer::new(server).unwrap(),
    );
    connect(&client, &server);
    let (client, _) = connect(&client, &server);
    assert!(client.session.handshake_data().resumed);
}
