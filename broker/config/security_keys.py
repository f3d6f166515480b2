"""Broker keys of TLS, SASL, principals, authorisation and delegation tokens.

One key a line in the notation that definitions.py explains.
"""

TABLE = """
authorizer.class.name string "" ro
connection.failed.authentication.delay.ms int 100 ro 0..
connections.max.reauth.ms long 0 ro
delegation.token.expiry.check.interval.ms long 3600000 ro 1..
delegation.token.expiry.time.ms long 86400000 ro 1..
delegation.token.master.key password null ro - <4
delegation.token.max.lifetime.ms long 604800000 ro 1..
delegation.token.secret.key password null ro
password.encoder.cipher.algorithm string AES/CBC/PKCS5Padding ro - <4
password.encoder.iterations int 4096 ro 1024.. <4
password.encoder.key.length int 128 ro 8.. <4
password.encoder.keyfactory.algorithm string null ro - <4
password.encoder.old.secret password null ro - <4
password.encoder.secret password null ro - <4
principal.builder.class class org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder
    broker
sasl.client.callback.handler.class class null ro
sasl.enabled.mechanisms list GSSAPI broker
sasl.jaas.config password null broker
sasl.kerberos.kinit.cmd string /usr/bin/kinit broker
sasl.kerberos.min.time.before.relogin long 60000 broker
sasl.kerberos.principal.to.local.rules list DEFAULT broker
sasl.kerberos.service.name string null broker
sasl.kerberos.ticket.renew.jitter double 0.05 broker
sasl.kerberos.ticket.renew.window.factor double 0.8 broker
sasl.login.callback.handler.class class null ro
sasl.login.class class null ro
sasl.login.connect.timeout.ms int null ro
sasl.login.read.timeout.ms int null ro
sasl.login.refresh.buffer.seconds short 300 broker
sasl.login.refresh.min.period.seconds short 60 broker
sasl.login.refresh.window.factor double 0.8 broker
sasl.login.refresh.window.jitter double 0.05 broker
sasl.login.retry.backoff.max.ms long 10000 ro
sasl.login.retry.backoff.ms long 100 ro
sasl.mechanism.controller.protocol string GSSAPI ro
sasl.mechanism.inter.broker.protocol string GSSAPI broker
sasl.oauthbearer.allow.unverified.audience bool false ro - 4+
sasl.oauthbearer.allow.unverified.issuer bool false ro - 4+
sasl.oauthbearer.assertion.algorithm string RS256 ro ~{ES256,RS256} 4+
sasl.oauthbearer.assertion.claim.aud string null ro - 4+
sasl.oauthbearer.assertion.claim.exp.seconds int 300 ro 0..86400 4+
sasl.oauthbearer.assertion.claim.iss string null ro - 4+
sasl.oauthbearer.assertion.claim.jti.include bool false ro - 4+
sasl.oauthbearer.assertion.claim.nbf.seconds int 60 ro 0..3600 4+
sasl.oauthbearer.assertion.claim.sub string null ro - 4+
sasl.oauthbearer.assertion.file string null ro - 4+
sasl.oauthbearer.assertion.private.key.file string null ro - 4+
sasl.oauthbearer.assertion.private.key.passphrase password null ro - 4+
sasl.oauthbearer.assertion.template.file string null ro - 4+
sasl.oauthbearer.client.credentials.client.id string null ro - 4+
sasl.oauthbearer.client.credentials.client.secret password null ro - 4+
sasl.oauthbearer.clock.skew.seconds int 30 ro
sasl.oauthbearer.expected.audience list "" ro
sasl.oauthbearer.expected.issuer string null ro
sasl.oauthbearer.jwks.endpoint.refresh.ms long 3600000 ro
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms long 10000 ro
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms long 100 ro
sasl.oauthbearer.jwks.endpoint.url string null ro
sasl.oauthbearer.jwt.retriever.class class org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever
    ro - 4+
sasl.oauthbearer.jwt.validator.class class org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator
    ro - 4+
sasl.oauthbearer.scope string null ro - 4+
sasl.oauthbearer.scope.claim.name string scope ro
sasl.oauthbearer.sub.claim.name string sub ro
sasl.oauthbearer.token.endpoint.url string null ro
sasl.server.callback.handler.class class null ro
sasl.server.max.receive.size int 524288 ro
security.inter.broker.protocol string PLAINTEXT ro {PLAINTEXT,SSL,SASL_PLAINTEXT,SASL_SSL}
security.providers string null ro
ssl.allow.dn.changes bool false ro
ssl.allow.san.changes bool false ro
ssl.cipher.suites list "" broker
ssl.client.auth string none broker {required,requested,none}
ssl.enabled.protocols list TLSv1.2,TLSv1.3 broker
ssl.endpoint.identification.algorithm string https broker
ssl.engine.factory.class class null broker
ssl.key.password password null broker
ssl.keymanager.algorithm string SunX509 broker
ssl.keystore.certificate.chain password null broker
ssl.keystore.key password null broker
ssl.keystore.location string null broker
ssl.keystore.password password null broker
ssl.keystore.type string JKS broker
ssl.principal.mapping.rules string DEFAULT ro
ssl.protocol string TLSv1.3 broker
ssl.provider string null broker
ssl.secure.random.implementation string null broker
ssl.trustmanager.algorithm string PKIX broker
ssl.truststore.certificates password null broker
ssl.truststore.location string null broker
ssl.truststore.password password null broker
ssl.truststore.type string JKS broker
"""
