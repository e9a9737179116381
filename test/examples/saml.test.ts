import { createHash, createSign, generateKeyPairSync, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { inflateRawSync } from 'node:zlib'
import supertest from 'supertest'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import * as saml from '../../examples/saml/app'
import { newUser } from '../../src/testing/records'
import { authenticator } from '../mfa/authenticator'
import { testClock } from '../support/clock'
import { freePort } from '../support/free-port'

const root = join(import.meta.dirname, '../..')
const keyOptions = {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
} as const
const idp = generateKeyPairSync('rsa', keyOptions)
const entryPoint = 'https://idp.example.com/sso'

beforeAll(() => {
  process.env.AUTH_JWT_SECRET = randomBytes(48).toString('base64')
  process.env.AUTH_MFA_SECRET_KEY = randomBytes(32).toString('base64')
})

/** The XML is in its canonical form already, so its bytes are what is signed (XML Signature, exclusive canonicalization). */
function signedResponse({
  email,
  to,
  requestId,
  key = idp.privateKey,
  isAsked = true,
  clockAheadSeconds = 0,
}: {
  email: string
  to: string
  requestId: string
  key?: string
  /** False: the signed assertion answers no request; only the response around it names one. */
  isAsked?: boolean
  clockAheadSeconds?: number
}): string {
  const now = Date.now() + clockAheadSeconds * 1_000
  const at = (seconds: number) => new Date(now + seconds * 1000).toISOString()
  const id = `_${randomBytes(16).toString('hex')}`
  const bodies = [
    `<Issuer>https://idp.example.com</Issuer>`,
    `<Subject><NameID Format="urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress">${email}</NameID><SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer"><SubjectConfirmationData ${isAsked ? `InResponseTo="${requestId}" ` : ''}NotOnOrAfter="${at(300)}" Recipient="${to}/saml/acs"></SubjectConfirmationData></SubjectConfirmation></Subject>` +
      `<Conditions NotBefore="${at(0)}" NotOnOrAfter="${at(300)}"><AudienceRestriction><Audience>${to}</Audience></AudienceRestriction></Conditions>` +
      `<AuthnStatement AuthnInstant="${at(0)}"><AuthnContext><AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password</AuthnContextClassRef></AuthnContext></AuthnStatement>`,
  ] as const
  const open = `<Assertion xmlns="urn:oasis:names:tc:SAML:2.0:assertion" ID="${id}" IssueInstant="${at(0)}" Version="2.0">`
  const digest = createHash('sha256')
    .update(`${open}${bodies.join('')}</Assertion>`)
    .digest('base64')
  const algorithm = (name: string, of: string) => `<${name} Algorithm="${of}"></${name}>`
  const c14n = 'http://www.w3.org/2001/10/xml-exc-c14n#'
  const signedInfo =
    `<SignedInfo xmlns="http://www.w3.org/2000/09/xmldsig#">${algorithm('CanonicalizationMethod', c14n)}${algorithm('SignatureMethod', 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256')}` +
    `<Reference URI="#${id}"><Transforms>${algorithm('Transform', 'http://www.w3.org/2000/09/xmldsig#enveloped-signature')}${algorithm('Transform', c14n)}</Transforms>` +
    `${algorithm('DigestMethod', 'http://www.w3.org/2001/04/xmlenc#sha256')}<DigestValue>${digest}</DigestValue></Reference></SignedInfo>`
  const value = createSign('sha256').update(signedInfo).sign(key, 'base64')
  const signature = `<Signature xmlns="http://www.w3.org/2000/09/xmldsig#">${signedInfo}<SignatureValue>${value}</SignatureValue></Signature>`
  const assertion = `${open}${bodies[0]}${signature}${bodies[1]}</Assertion>`
  const response =
    `<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" ID="_r${id}" Version="2.0" IssueInstant="${at(0)}" Destination="${to}/saml/acs" InResponseTo="${requestId}">` +
    `<samlp:Status><samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></samlp:Status>${assertion}</samlp:Response>`
  return Buffer.from(response).toString('base64')
}

async function openApp() {
  const port = await freePort()
  const server = await saml.start(port, ':memory:', { entryPoint, certificate: idp.publicKey })
  onTestFinished(() => void server.close())
  const { id } = await server.store.users.insert(newUser({ email: 'ana@example.com' }))
  return { auth: server.auth, userId: id, url: `http://127.0.0.1:${port}`, to: `http://localhost:${port}` }
}

/** What the browser brings to the provider. */
async function begin(url: string) {
  const { headers, status } = await supertest(url).get('/saml/login')
  const location = new URL(String(headers['location']))
  const request = inflateRawSync(Buffer.from(location.searchParams.get('SAMLRequest') ?? '', 'base64')).toString()
  const [cookie = ''] = headers['set-cookie'] as unknown as string[]
  return {
    status,
    location,
    cookie: cookie.split(';')[0] ?? '',
    attributes: cookie,
    state: location.searchParams.get('RelayState'),
    requestId: /\bID="([^"]+)"/.exec(request)?.[1] ?? '',
  }
}

test('is on docs/examples.md', () => {
  expect(readFileSync(join(root, 'docs/examples.md'), 'utf8')).toContain('(../examples/saml/app.ts)')
})

type App = Awaited<ReturnType<typeof openApp>>

/** The provider's form, which the browser posts from another site. */
function arrive(
  { url, to }: Pick<App, 'url' | 'to'>,
  { cookie, state, requestId }: Awaited<ReturnType<typeof begin>>,
  changes: object = {},
) {
  return supertest(url)
    .post('/saml/acs')
    .set({ Cookie: cookie, Origin: 'https://idp.example.com', 'Sec-Fetch-Site': 'cross-site' })
    .type('form')
    .send({ RelayState: state, SAMLResponse: signedResponse({ email: 'ana@example.com', to, requestId, ...changes }) })
}

const cookieOf = ({ headers }: supertest.Response) =>
  ((headers['set-cookie'] ?? []) as unknown as string[]).find((line) => line.startsWith('auth_session='))?.split(';')[0] ?? null

test('an employee signs in at the provider, and a session begins', async () => {
  const app = await openApp()
  const begun = await begin(app.url)
  expect([begun.status, begun.location.href.startsWith(entryPoint), begun.attributes]).toEqual([
    302,
    true,
    expect.stringMatching(/HttpOnly; Secure; SameSite=None/),
  ])
  const arrived = await arrive(app, begun)
  expect([arrived.status, arrived.headers['location']]).toEqual([303, '/'])
  expect(
    (
      await supertest(app.url)
        .get('/')
        .set('Cookie', String(cookieOf(arrived)))
    ).text,
  ).toBe('Signed in.')
  const again = await arrive(app, begun)
  expect([again.status, cookieOf(again)]).toEqual([403, null])
})

test('an account with a second factor gets no session before its code', async () => {
  const app = await openApp()
  const { secret } = await app.auth.service.enrollTotp(app.userId)
  const factor = authenticator(secret, testClock(new Date()))
  await app.auth.service.confirmTotp({ userId: app.userId, amr: ['ext'], code: factor.code(-1) })
  const arrived = await arrive(app, await begin(app.url))
  expect([arrived.status, cookieOf(arrived)]).toEqual([200, null])
  const mfaToken = /name="mfaToken" value="([^"]+)"/.exec(arrived.text)?.[1]
  const send = (code: string) => supertest(app.url).post('/saml/code').set('Origin', app.to).type('form').send({ mfaToken, code })
  const wrong = await send('000000')
  expect([wrong.status, cookieOf(wrong)]).toEqual([401, null])
  const right = await send(factor.code())
  expect(right.status).toBe(303)
  expect(
    (
      await supertest(app.url)
        .get('/')
        .set('Cookie', String(cookieOf(right)))
    ).text,
  ).toBe('Signed in.')
})

test('another browser, another key, another audience, an unknown address and a changed assertion get no session', async () => {
  const app = await openApp()
  const { privateKey } = generateKeyPairSync('rsa', keyOptions)
  const outcomes = await Promise.all([
    begin(app.url).then((begun) => arrive(app, { ...begun, cookie: '' })),
    begin(app.url).then((begun) => arrive(app, { ...begun, cookie: `saml_state=${'a'.repeat(22)}` })),
    begin(app.url).then((begun) => arrive(app, begun, { key: privateKey })),
    begin(app.url).then((begun) => arrive(app, begun, { to: 'https://other.example.com' })),
    begin(app.url).then((begun) => arrive(app, begun, { email: 'bea@example.com' })),
    begin(app.url).then((begun) => arrive(app, begun, { requestId: '_nobody' })),
  ])
  expect(outcomes.map((response) => [response.status, cookieOf(response)])).toEqual(Array(6).fill([403, null]))
})

test('an assertion that answers no request gets no session, whatever the unsigned response around it says', async () => {
  const app = await openApp()
  const arrived = await arrive(app, await begin(app.url), { isAsked: false })
  expect([arrived.status, cookieOf(arrived)]).toEqual([403, null])
})

test('an answer to the request of another browser gets no session', async () => {
  const app = await openApp()
  const [own, other] = [await begin(app.url), await begin(app.url)]
  const arrived = await arrive(app, { ...own, requestId: other.requestId })
  expect([arrived.status, cookieOf(arrived)]).toEqual([403, null])
})

test('a provider whose clock is two seconds ahead is believed, and one of an hour is not', async () => {
  const app = await openApp()
  const statuses = []
  for (const clockAheadSeconds of [2, 3_600, -3_600]) statuses.push((await arrive(app, await begin(app.url), { clockAheadSeconds })).status)
  expect(statuses).toEqual([303, 403, 403])
})

test('a state of other characters is refused like every wrong one', async () => {
  const app = await openApp()
  const begun = await begin(app.url)
  expect((await arrive(app, { ...begun, state: 'é'.repeat(22) })).status).toBe(403)
})
