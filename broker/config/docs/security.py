"""Texts on keys of TLS, SASL, OAuth, delegation tokens and authorisation, in the notation of the package."""

TABLE = """
authorizer.class.name
    The class that decides who may do what. Empty lets everybody do everything.
connection.failed.authentication.delay.ms
    How long a connection that failed to authenticate is kept waiting before it is closed, against guessing.
connections.max.reauth.ms
    After how long a SASL client must authenticate anew or lose its connection; 0 never asks. Can be set for
    a listener and mechanism.
delegation.token.expiry.check.interval.ms
    How often expired delegation tokens are removed.
delegation.token.expiry.time.ms
    How long a delegation token is valid unless it is renewed.
delegation.token.master.key
    Older name of delegation.token.secret.key.
delegation.token.max.lifetime.ms
    The greatest age of a delegation token, however often it is renewed.
delegation.token.secret.key
    The secret that delegation tokens are signed with, the same on all brokers; unset, there are no tokens.
password.encoder.cipher.algorithm
    ZooKeeper mode only: the cipher by which passwords in dynamic values are stored.
password.encoder.iterations
    ZooKeeper mode only: rounds in which the key that encrypts stored passwords is derived.
password.encoder.key.length
    ZooKeeper mode only: length in bits of the key that encrypts stored passwords.
password.encoder.keyfactory.algorithm
    ZooKeeper mode only: how the key that encrypts stored passwords is derived.
password.encoder.old.secret
    ZooKeeper mode only: the former secret, while stored passwords are written anew with the present one.
password.encoder.secret
    ZooKeeper mode only: the secret from which the key that encrypts stored passwords is derived; needed
    for passwords in dynamic values.
principal.builder.class
    The class that makes a principal of what a connection has proved about its client.
sasl.client.callback.handler.class
    A class that answers the questions of a SASL mechanism on connections that this broker opens.
sasl.enabled.mechanisms
    SASL mechanisms that clients may choose from. Can be set for a listener.
sasl.jaas.config
    Login settings of a SASL mechanism in the notation of JAAS files. Set it for a listener and mechanism.
sasl.kerberos.kinit.cmd
    Path of the kinit command.
sasl.kerberos.min.time.before.relogin
    The shortest pause between two refreshes of a Kerberos login.
sasl.kerberos.principal.to.local.rules
    Rules that make short user names of Kerberos principals; the first that matches counts.
sasl.kerberos.service.name
    The service name of brokers in Kerberos.
sasl.kerberos.ticket.renew.jitter
    The share by which the time of a ticket's renewal varies at random.
sasl.kerberos.ticket.renew.window.factor
    After which share of a ticket's life it is renewed.
sasl.login.callback.handler.class
    A class that answers the questions of a SASL login.
sasl.login.class
    The class that carries out a SASL login.
sasl.login.connect.timeout.ms
    How long connecting to the token provider may take; OAUTHBEARER only.
sasl.login.read.timeout.ms
    How long the token provider's answer may take; OAUTHBEARER only.
sasl.login.refresh.buffer.seconds
    How long before a token expires it is refreshed at the latest; OAUTHBEARER only.
sasl.login.refresh.min.period.seconds
    The shortest pause between two refreshes of a token; OAUTHBEARER only.
sasl.login.refresh.window.factor
    After which share of a token's life it is refreshed; OAUTHBEARER only.
sasl.login.refresh.window.jitter
    The share by which the time of a token's refresh varies at random; OAUTHBEARER only.
sasl.login.retry.backoff.max.ms
    The longest pause between attempts to reach the token provider; OAUTHBEARER only.
sasl.login.retry.backoff.ms
    The first pause between attempts to reach the token provider; OAUTHBEARER only.
sasl.mechanism.controller.protocol
    KRaft only: the SASL mechanism towards controllers.
sasl.mechanism.inter.broker.protocol
    The SASL mechanism that brokers use among themselves.
sasl.oauthbearer.allow.unverified.audience
    Whether tokens are taken although no expected audience is configured.
sasl.oauthbearer.allow.unverified.issuer
    Whether tokens are taken although no expected issuer is configured.
sasl.oauthbearer.assertion.algorithm
    Algorithm that signs the assertions by which a client asks for tokens.
sasl.oauthbearer.assertion.claim.aud
    Audience that the assertions name by which a client asks for tokens.
sasl.oauthbearer.assertion.claim.exp.seconds
    For how many seconds the assertions are valid by which a client asks for tokens.
sasl.oauthbearer.assertion.claim.iss
    Issuer that the assertions name by which a client asks for tokens.
sasl.oauthbearer.assertion.claim.jti.include
    Whether each assertion by which a client asks for tokens carries an id of its own.
sasl.oauthbearer.assertion.claim.nbf.seconds
    How many seconds back the assertions begin to be valid by which a client asks for tokens.
sasl.oauthbearer.assertion.claim.sub
    Subject that the assertions name by which a client asks for tokens.
sasl.oauthbearer.assertion.file
    File with a finished assertion, used in place of a made one.
sasl.oauthbearer.assertion.private.key.file
    File with the private key that signs assertions.
sasl.oauthbearer.assertion.private.key.passphrase
    Passphrase of the private key that signs assertions.
sasl.oauthbearer.assertion.template.file
    File with headers and claims that assertions start from.
sasl.oauthbearer.client.credentials.client.id
    Client id with which tokens are asked for.
sasl.oauthbearer.client.credentials.client.secret
    Secret that belongs to the client id with which tokens are asked for.
sasl.oauthbearer.clock.skew.seconds
    By how much the clocks of broker and token provider may differ.
sasl.oauthbearer.expected.audience
    Audiences of which a token must name one.
sasl.oauthbearer.expected.issuer
    Issuer that a token must name.
sasl.oauthbearer.jwks.endpoint.refresh.ms
    How often the provider's signing keys are fetched anew.
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
    The longest pause between attempts to fetch signing keys.
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
    The first pause between attempts to fetch signing keys.
sasl.oauthbearer.jwks.endpoint.url
    Address of the provider's signing keys.
sasl.oauthbearer.jwt.retriever.class
    The class that gets tokens for connections that this broker opens.
sasl.oauthbearer.jwt.validator.class
    The class that checks the tokens of clients.
sasl.oauthbearer.scope
    Scope that tokens are asked for with.
sasl.oauthbearer.scope.claim.name
    Name of the claim that holds a token's scopes.
sasl.oauthbearer.sub.claim.name
    Name of the claim that holds a token's subject, which becomes the user.
sasl.oauthbearer.token.endpoint.url
    Address at which the provider gives out tokens.
sasl.server.callback.handler.class
    A class that answers the questions of a SASL mechanism for clients. Set it for a listener and mechanism.
sasl.server.max.receive.size
    The largest request that is read before a client has authenticated.
security.inter.broker.protocol
    The security protocol between brokers; not together with inter.broker.listener.name.
security.providers
    Classes that install providers of security algorithms.
ssl.allow.dn.changes
    Whether a key store may be exchanged for one whose certificate has another distinguished name.
ssl.allow.san.changes
    Whether a key store may be exchanged for one whose certificate lacks alternative names of the old one.
ssl.cipher.suites
    Cipher suites that TLS connections may use; empty takes the library's choice.
ssl.client.auth
    Whether clients must show a certificate (required), may (requested) or are not asked (none).
ssl.enabled.protocols
    TLS versions that connections may use.
ssl.endpoint.identification.algorithm
    Whether a server's certificate must name its host on connections that this broker opens; empty does not
    check.
ssl.engine.factory.class
    A class that sets up TLS connections in its own way.
ssl.key.password
    Password of the private key in the key store or in ssl.keystore.key.
ssl.keymanager.algorithm
    How keys are picked from the key store.
ssl.keystore.certificate.chain
    The certificate chain itself in PEM form, in place of a file.
ssl.keystore.key
    The private key itself in PEM form, in place of a file.
ssl.keystore.location
    File with the private key and its certificate chain.
ssl.keystore.password
    Password of the key store; PEM files have none.
ssl.keystore.type
    Format of the key store, for instance PEM, PKCS12 or JKS.
ssl.principal.mapping.rules
    Rules that make user names of the distinguished names in client certificates; the first that matches
    counts.
ssl.protocol
    TLS version with which a connection begins.
ssl.provider
    Name of the security provider for TLS connections.
ssl.secure.random.implementation
    The generator of random numbers for TLS.
ssl.trustmanager.algorithm
    How certificates are checked against the trust store.
ssl.truststore.certificates
    Trusted certificates themselves in PEM form, in place of a file.
ssl.truststore.location
    File with the certificates that are trusted.
ssl.truststore.password
    Password of the trust store; without it the file is read but not checked.
ssl.truststore.type
    Format of the trust store, for instance PEM, PKCS12 or JKS.
"""
