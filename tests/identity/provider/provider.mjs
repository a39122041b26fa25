// An OpenID Connect provider on loopback for the tests: unmodified oidc-provider, with new keys at each
// start.
//
// Usage: node provider.mjs PORT GENERATION [PUBLIC_PORT]
// Key ids are "GENERATION-ALG". PUBLIC_PORT is the port of the issuer if a proxy stands in front. One line of JSON on
// standard output reports readiness. The end of standard input ends the process, so that it does not outlive the
// tests.

import { generateKeyPairSync, createPrivateKey, sign } from 'node:crypto';
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const [port, generation, publicPort] = process.argv.slice(2);

const ALGORITHMS = {
  RS256: ['rsa', { modulusLength: 2048 }],
  ES256: ['ec', { namedCurve: 'P-256' }],
  EdDSA: ['ed25519', {}],
};
const keys = Object.entries(ALGORITHMS).map(([alg, [type, options]]) => ({
  ...generateKeyPairSync(type, options).privateKey.export({ format: 'jwk' }),
  alg,
  use: 'sig',
  kid: `${generation}-${alg}`,
}));

const server = createServer();
await new Promise((resolve) => server.listen(Number(port), '127.0.0.1', resolve));
const issuer = `http://127.0.0.1:${publicPort ?? server.address().port}`;

// Clients use the clock of this machine, and tokens live longer than any test.
const provider = new Provider(issuer, {
  jwks: { keys },
  clients: [
    {
      client_id: 'web',
      client_secret: 'web-secret',
      grant_types: ['authorization_code', 'client_credentials'],
      redirect_uris: ['http://127.0.0.1/signed-in'],
    },
    // The dashboard, as a public client and as one with a secret. The port of a loopback address may be any (RFC 8252).
    {
      client_id: 'dashboard',
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      redirect_uris: ['http://127.0.0.1/ui/callback'],
    },
    {
      client_id: 'dashboard with secret',
      client_secret: 'd:e&c/r%t+',
      application_type: 'native',
      redirect_uris: ['http://127.0.0.1/ui/callback'],
    },
    // A dashboard whose access tokens live for a second, with refresh tokens that work once.
    {
      client_id: 'short',
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
      redirect_uris: ['http://127.0.0.1/ui/callback'],
    },
    // The credentials contain characters that form encoding must escape.
    { client_id: 'agentcfg api', client_secret: 's:e&c/r%t+', grant_types: [], response_types: [], redirect_uris: [] },
  ],
  claims: { openid: ['sub', 'name', 'email'] },
  conformIdTokenClaims: false,
  cookies: { keys: ['for tests alone'] },
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    introspection: { enabled: true },
    revocation: { enabled: true, allowedPolicy: () => true },
    userinfo: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      useGrantedResource: () => true,
      // urn:AUDIENCE:ALG
      getResourceServerInfo: (_ctx, resource) => {
        const [, audience, alg] = resource.split(':');
        return { scope: 'api', audience, accessTokenFormat: 'jwt', jwt: { sign: { alg } } };
      },
    },
  },
  interactions: { url: (_ctx, interaction) => `/interaction/${interaction.uid}` },
  findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ sub: id, name: `Name of ${id}`, email: `${id}@example.com` }) }),
  issueRefreshToken: (_ctx, client) => client.grantTypeAllowed('refresh_token'),
  // Every user consents to every client.
  loadExistingGrant: async (ctx) => {
    const grant = new provider.Grant({ clientId: ctx.oidc.client.clientId, accountId: ctx.oidc.session.accountId });
    grant.addOIDCScope('openid');
    if (ctx.oidc.params.resource) grant.addResourceScope(ctx.oidc.params.resource, 'api');
    await grant.save();
    return grant;
  },
  ttl: {
    AccessToken: (_ctx, _token, client) => (client.clientId === 'short' ? 1 : 3600),
    RefreshToken: 3600,
    ClientCredentials: 3600,
    AuthorizationCode: 60,
    Interaction: 60,
    Session: 3600,
    Grant: 3600,
  },
});

const hits = {};
const handle = provider.callback();

// Signs any two texts with the real keys, which no real provider would do.
function signAnything(alg, header, claims) {
  const jwk = keys.find((key) => key.alg === alg);
  const key = createPrivateKey({ key: jwk, format: 'jwk' });
  const encode = (text) => Buffer.from(text).toString('base64url');
  const message = `${encode(header)}.${encode(claims)}`;
  const signature = sign(alg === 'EdDSA' ? null : 'sha256', Buffer.from(message), { key, dsaEncoding: 'ieee-p1363' });
  return `${message}.${signature.toString('base64url')}`;
}

async function body(request) {
  let text = '';
  for await (const chunk of request) text += chunk;
  return text;
}

server.on('request', async (request, response) => {
  const path = request.url.split('?')[0];
  hits[path] = (hits[path] ?? 0) + 1;
  try {
    if (path === '/test/hits') {
      response.end(JSON.stringify(hits));
    } else if (path === '/test/sign') {
      const { alg, header, claims } = JSON.parse(await body(request));
      response.end(signAnything(alg, header, claims));
    } else if (path.startsWith('/interaction/')) {
      // A user would type a name and a password here. A test sends the name with the request; a browser is asked for it.
      const { params, prompt } = await provider.interactionDetails(request, response);
      const name = params.login_hint ?? new URLSearchParams(await body(request)).get('name');
      if (prompt.name === 'login' && !name) {
        response.writeHead(200, { 'Content-Type': 'text/html' });
        response.end('<!doctype html><title>Provider</title><link rel="icon" href="data:,"><form method="post"><label>Name <input name="name"></label><button>Sign in</button></form>');
        return;
      }
      // The provider asks for consent for each sign-in of a native client.
      const given = prompt.name === 'login' ? { login: { accountId: name } } : { consent: {} };
      await provider.interactionFinished(request, response, given);
    } else {
      handle(request, response);
    }
  } catch (error) {
    console.error(error);
    response.writeHead(500).end(String(error));
  }
});

console.log(JSON.stringify({ issuer, port: server.address().port }));
process.stdin.on('end', () => process.exit(0)).resume();
