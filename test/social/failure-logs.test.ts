import { beforeEach, describe, expect, test } from 'vitest'
import type { Mounted } from '../support/app'
import { databases } from '../support/databases'
import { answer, signJwt } from '../support/fake-provider'
import { begin, callBack, onDatabase } from './redirect-steps'

/** Section 19: why it failed is in the log. Every line names the provider, the check that failed, and what to do. */

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onDatabase(database, { memory: true })

let host: Mounted
beforeEach(async () => {
  host = await start()
})

const lines = () => host.logs.entries.filter(({ message }) => message.startsWith('doorward: a provider'))
const seconds = () => Math.floor(host.clock.now().getTime() / 1000)
const changed = (change: (claims: Record<string, unknown>) => Record<string, unknown> | string) => () => {
  host.provider.idToken = change
}
const header = (members: Record<string, unknown>) => changed((claims) => host.provider.signJwt(claims, { header: members }))
const refusing = (endpoint: 'token' | 'userinfo' | 'jwks', status: number, body: unknown) => () =>
  host.provider.on(endpoint, answer(status, body))

describe('a callback that fails at the provider', () => {
  const cases: [what: string, spoil: () => void, status: number | null, error: string | null, says: RegExp][] = [
    [
      'of a symmetric algorithm',
      header({ alg: 'HS256' }),
      null,
      null,
      /id_token refused: algorithm not in the list \(alg is HS256\): have the provider sign with one of RS256/,
    ],
    [
      'that is encrypted',
      changed(() => 'eyJh.a.b.c.d'),
      null,
      null,
      /id_token refused: it is encrypted \(JWE\).*register this client.*without encryption/,
    ],
    ['of an unknown key', header({ kid: 'other' }), null, null, /id_token refused: the key set has no such key.*check jwksUri/],
    [
      'of another signature',
      changed((claims) => host.provider.signJwt(claims).replace(/.{8}$/, 'AAAAAAAA')),
      null,
      null,
      /id_token refused: the signature is not valid: check that jwksUri/,
    ],
    [
      'of another issuer',
      changed((claims) => ({ ...claims, iss: 'https://canary.example' })),
      null,
      null,
      /id_token refused: iss is not the issuer: set issuer exactly/,
    ],
    [
      'for another application',
      changed((claims) => ({ ...claims, aud: 'canary' })),
      null,
      null,
      /id_token refused: aud does not name this client: check clientId/,
    ],
    [
      'issued to another',
      changed((claims) => ({ ...claims, azp: 'canary' })),
      null,
      null,
      /id_token refused: azp is not this client: check clientId/,
    ],
    [
      'of another login',
      changed((claims) => ({ ...claims, nonce: 'canary' })),
      null,
      null,
      /id_token refused: nonce is not the nonce that was sent/,
    ],
    [
      'that has expired',
      changed((claims) => ({ ...claims, exp: seconds() - 42 })),
      null,
      null,
      /id_token refused: expired 42 s ago \(exp\): check the clocks/,
    ],
    [
      'of the future',
      changed((claims) => ({ ...claims, iat: seconds() + 90 })),
      null,
      null,
      /id_token refused: iat is 90 s ahead: check the clocks/,
    ],
    ['without a subject', changed(({ sub: _sub, ...claims }) => claims), null, null, /id_token refused: sub is missing/],
    [
      'whose keys cannot be read',
      refusing('jwks', 503, 'canary'),
      null,
      null,
      /id_token refused: the key set cannot be read \(status 503.*check jwksUri/,
    ],
    [
      'of another subject than userinfo',
      refusing('userinfo', 200, { sub: 'canary' }),
      null,
      null,
      /sub: the profile is of another subject.*check userinfoUrl/,
    ],
    [
      'with a spent code',
      refusing('token', 400, { error: 'invalid_grant', canary: 1 }),
      400,
      'invalid_grant',
      /invalid_grant: the code was used or has expired.*check redirectUri and pkce/,
    ],
    [
      'with an error of its own',
      refusing('token', 400, { error: 'AADSTS50011' }),
      400,
      'AADSTS50011',
      /AADSTS50011: look it up in the documentation/,
    ],
    ['with an error in words', refusing('token', 400, { error: 'a canary sings' }), 400, 'other', /other: look it up/],
    [
      'with a redirect',
      refusing('token', 302, ''),
      302,
      null,
      /doorward does not follow a redirect; use the address that the redirect leads to/,
    ],
    ['with a page', refusing('token', 404, '<html>'), 404, null, /it gave no reason; check the address of the endpoint/],
    ['with a page and 200', refusing('token', 200, '<html>'), 200, null, /not a JSON object.*check the address/],
    ['that is down', refusing('token', 503, 'canary'), 503, null, /it gave no reason; look at its own log, and try again/],
    [
      'of a bad access token',
      refusing('userinfo', 401, { error: 'invalid_token' }),
      401,
      'invalid_token',
      /invalid_token.*check that userinfoUrl/,
    ],
    [
      'with a secret that it refuses',
      refusing('token', 401, { error: 'invalid_client' }),
      401,
      'invalid_client',
      /refused this application/,
    ],
    [
      'with an encrypted userinfo',
      () => host.provider.on('userinfo', answer(200, 'eyJh.a.b.c.d')),
      null,
      null,
      /userinfo refused: it is encrypted/,
    ],
    [
      'with a userinfo signed by another',
      () => host.provider.on('userinfo', answer(200, signJwt({ sub: 'subject-1' }, { alg: 'RS256', kid: 'x' }))),
      null,
      null,
      /userinfo refused: the key set has no such key/,
    ],
  ]

  test.each(cases)('%s: one line', async (_what, spoil, status, error, says) => {
    spoil()
    const { query, cookie } = await begin(host)
    const response = await callBack(host, query, { cookie })

    expect([response.status, response.body.code]).toEqual([502, 'OAUTH_ERROR'])
    expect(lines()).toEqual([
      {
        level: 'warn',
        message: 'doorward: a provider call failed',
        fields: { provider: 'corp', status, error, cause: expect.objectContaining({ message: expect.stringMatching(says) }) },
      },
    ])
    expect(host.logs.text()).not.toContain('canary')
  })

  test('nobody answers: the system’s word, and what to do', async () => {
    host.provider.on('token', (_request, response) => void response.socket?.resetAndDestroy())
    const { query, cookie } = await begin(host)
    await callBack(host, query, { cookie })
    const cause = {
      name: 'HttpClientError',
      code: expect.any(String),
      message: expect.stringMatching(/did not answer: check the address.*can reach it/),
    }
    expect(lines()).toMatchObject([{ fields: { provider: 'corp', status: null, cause } }])
  })
})

describe('a provider’s error on the callback', () => {
  const came = async (query: Record<string, string>) => {
    const { cookie, state } = await begin(host)
    const response = await callBack(host, { state, ...query }, { cookie })
    expect([response.status, response.body.code]).toEqual([401, 'OAUTH_PROVIDER_DENIED'])
    return response.body.details
  }

  test.each(['access_denied', 'login_required', 'interaction_required', 'consent_required', 'account_selection_required'])(
    '%s is the person’s own no: told, and not logged',
    async (error) => {
      expect(await came({ error, error_description: 'canary' })).toEqual({ error })
      expect(lines()).toEqual([])
    },
  )

  test.each([
    ['invalid_scope', 'invalid_scope', /check scopes/],
    ['unauthorized_client', 'unauthorized_client', /allow the authorization code grant/],
    ['unsupported_response_type', 'unsupported_response_type', /response type code/],
    ['invalid_request', 'invalid_request', /pkce and redirectUri/],
    ['server_error', 'server_error', /its own log/],
    ['temporarily_unavailable', 'temporarily_unavailable', /try again/],
    ['request_not_supported', 'request_not_supported', /documentation of the provider/],
    ['AADSTS65004', undefined, /documentation of the provider/],
  ])('%s is logged at warn with its description; the wire has the closed list', async (error, told, advice) => {
    const details = await came({ error, error_description: `${'why '.repeat(100)}\u202e` })
    expect(details).toEqual(told === undefined ? {} : { error: told })
    expect(lines()).toEqual([
      {
        level: 'warn',
        message: 'doorward: a provider sent a person back with an error',
        fields: { provider: 'corp', error, description: 'why '.repeat(50), isOurs: true, advice: expect.stringMatching(advice) },
      },
    ])
  })

  test('what is no error code is no word of a provider: neither it nor its description is repeated', async () => {
    expect(await came({ error: 'no canary\r\n', error_description: 'canary' })).toEqual({})
    expect(lines()).toMatchObject([{ fields: { provider: 'corp', error: 'other', description: null } }])
    expect(host.logs.text()).not.toContain('canary')
  })

  test('a request that nobody began is told apart', async () => {
    await callBack(host, { state: 'made up', error: 'invalid_scope' }, { cookie: null })
    expect(lines()).toMatchObject([{ fields: { provider: 'corp', error: 'invalid_scope', isOurs: false } }])
  })
})
