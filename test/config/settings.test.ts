import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import type { RouterSettings, Settings } from '../../src/core/config/every-setting'
import { environmentVariable, resolveSettings } from '../../src/core/config/settings'
import { settingNames } from '../../src/core/config/settings-schema'
import { ConfigurationError } from '../../src/core/errors'

const jwtSecret = 'Zq8vR2nX5tLw0cJ7hYb3KdMf9sPg6aUe'
const otherSecret = 'Kd3nV6xYqT1mWf8sJzRb5cHg0uLp9aEe'
const production = { production: true }

/** Whatever a host might pass, checked types aside: the rules hold at run time. */
function resolve(settings: Record<string, unknown>, environment = production): Settings {
  return resolveSettings({ jwtSecret, ...settings } as RouterSettings, environment) // wrong types are what is tested
}

interface Row {
  byDefault: unknown
  /** Given, and what it becomes. */
  good: [given: unknown, becomes?: unknown][]
  bad: unknown[]
  /** Other settings the good values need. */
  beside?: Record<string, unknown>
}

const notTrueOrFalse = ['yes', 'no', 'TRUE', ' true', '2', 0, 1, null, {}, [], 'constructor', 'on']
const notWhole = [
  Number.NaN,
  Number.POSITIVE_INFINITY,
  1e99,
  -1,
  300.5,
  '300.5',
  '1e3',
  '0x40',
  '+300',
  ' 300',
  '300s',
  '-1',
  '007',
  null,
  true,
  [300],
  '1e99',
  '9'.repeat(40),
]
const notAnOrigin = [
  'http://site.test',
  'https://site.test/',
  'https://site.test/path',
  'https://site.test?query',
  'https://site.test#fragment',
  'https://someone@site.test',
  'https://someone:secret@site.test',
  'https://site.test:443',
  'https://SITE.test',
  'site.test',
  '//site.test',
  'ftp://site.test',
  'javascript:alert(1)',
  'null',
  ' https://site.test',
  'https://site.test\n',
  'https://localhost.example.com:bad',
  'http://127.0.0.1.example.com',
  'http://localhost.example.com',
  'http://0.0.0.0:3000',
]
const notARedirect = [
  'http://site.test/in',
  '//evil.example',
  '/\\evil.example',
  '\\/evil.example',
  '\\\\evil.example',
  '/\t/evil.example',
  '/in\nSet-Cookie: a=b',
  '/in page',
  '/\u200bin',
  'in',
  './in',
  '?in',
  'https:/evil.example',
  'https:evil.example',
  'https:\\\\evil.example',
  'https:///evil.example',
  'javascript:alert(1)',
  'data:text/html,x',
  'https://someone@site.test/in',
  ` ${'https://site.test'}`,
  `/${'a'.repeat(2048)}`,
  7,
  {},
]
const notATemplate = [
  'https://site.test/activate',
  'https://site.test/{token}/{token}',
  'https://{token}.example.com/',
  'https://site.test:{token}/',
  'https://{token}@site.test/',
  'http://site.test/{token}',
  '/activate/{token}',
  '{token}',
  'javascript:alert("{token}")',
  'https://site.test/a b/{token}',
  'https://site.test/{TOKEN}',
  5,
]
const notACookieName = ['a b', 'a;b', 'a=b', 'a,b', 'naïve', 'a\nb', '"a"', 'a'.repeat(65), 'csrf_token', 5, null]

function whole(byDefault: number, least: number, most: number, beside: Record<string, unknown> = {}): Row {
  return {
    byDefault,
    good: [[least], [most], [`${least}`, least], [`${most}`, most]],
    bad: [...notWhole, least - 1, most + 1, `${most + 1}`],
    beside,
  }
}

function flag(byDefault: boolean, beside: Record<string, unknown> = {}): Row {
  return { byDefault, good: [[true], [false], ['true', true], ['false', false], ['1', true], ['0', false]], bad: notTrueOrFalse, beside }
}

function cookieName(byDefault: string): Row {
  return { byDefault, good: [['sid'], ['__Secure-sid'], ["!#$%&'*+-.^_`|~09azAZ"]], bad: notACookieName }
}

const redirect: Row = {
  byDefault: null,
  good: [
    ['/'],
    ['/in?from=mail#top'],
    ['https://site.test/in'],
    ['http://localhost:5173/in'],
    ['http://[::1]/'],
    ['http://127.0.0.1:1/'],
    [null],
  ],
  bad: notARedirect,
  beside: { tokenDelivery: 'cookie' },
}

const template: Row = {
  byDefault: null,
  good: [
    ['https://site.test/activate/{token}'],
    ['https://site.test/#/activate?token={token}'],
    ['http://localhost:3000/a?t={token}'],
    [null],
  ],
  bad: notATemplate,
}

const key = Buffer.from('00112233445566778899aabbccddeeff0123456789abcdef0011223344556677', 'hex').toString('base64')

/** Its shape; what PEM text has to be is told in session/jwt-keys.test.ts. */
const jwtKey = { kid: '2026-03', alg: 'ES256', privateKey: 'pem' }

const issuer = 'https://id.example.test/auth'

const table: Record<keyof Settings, Row> = {
  jwtSecret: {
    byDefault: jwtSecret,
    good: [
      [jwtSecret],
      ['ä€9xQ-7!zLm,2pWk8vTbRf4#nGh6(s1Y'],
      [[jwtSecret]],
      [[otherSecret, jwtSecret]],
      [JSON.stringify([otherSecret, jwtSecret]), [otherSecret, jwtSecret]],
      [[`[${jwtSecret}]`]],
    ],
    bad: [
      'short',
      'a'.repeat(31),
      'a'.repeat(64),
      5,
      null,
      {},
      [],
      '[]',
      [jwtSecret, jwtSecret],
      [jwtSecret, 'short'],
      [jwtSecret, 'a'.repeat(64)],
      [jwtSecret, null],
      [jwtSecret, [otherSecret]],
      Array.from({ length: 11 }, (_, place) => `${jwtSecret}${place}`),
      `[${otherSecret},${jwtSecret}]`,
      `['${otherSecret}', '${jwtSecret}']`,
    ],
  },
  jwtKeys: {
    byDefault: null,
    good: [[null], [[jwtKey]], [JSON.stringify([jwtKey]), [jwtKey]], [[jwtKey, { kid: 'old', alg: 'RS256', publicKey: 'pem' }]]],
    bad: [
      [],
      '[]',
      {},
      'not a list',
      JSON.stringify(jwtKey),
      5,
      [null],
      [{ ...jwtKey, kid: '' }],
      [{ ...jwtKey, kid: 'x'.repeat(129) }],
      [{ ...jwtKey, kid: 'a "quoted" kid' }],
      [{ ...jwtKey, kid: 7 }],
      [{ ...jwtKey, alg: 'HS256' }],
      [{ ...jwtKey, alg: 'none' }],
      [{ ...jwtKey, alg: 'es256' }],
      [{ kid: 'k', alg: 'ES256' }],
      [{ ...jwtKey, privateKey: 'x'.repeat(16_385) }],
      [{ ...jwtKey, privateKey: { pem: 'canary' } }],
      [{ ...jwtKey, secret: 'canary' }],
      [jwtKey, { ...jwtKey }],
      Array.from({ length: 21 }, (_, index) => ({ ...jwtKey, kid: `k${index}` })),
    ],
  },
  accessTokenTtlSeconds: whole(900, 1, 86_400),
  refreshTokenTtlSeconds: whole(604_800, 1, 31_536_000),
  refreshFamilyTtlSeconds: whole(2_592_000, 1, 315_360_000),
  refreshReuseGraceSeconds: whole(0, 0, 60),
  tokenDelivery: { byDefault: 'bearer', good: [['bearer'], ['cookie'], ['both']], bad: ['Bearer', 'cookies', 'constructor', true, null] },
  cookieSecure: flag(true),
  cookieSamesite: { byDefault: 'lax', good: [['lax'], ['strict'], ['none']], bad: ['Lax', 'off', false, null] },
  cookieDomain: {
    byDefault: null,
    good: [['example.com'], ['site.test'], [null]],
    bad: [
      '.example.com',
      'example.com:443',
      'https://example.com',
      'example.com/',
      'a;b',
      'a b',
      '-a.example',
      'example.com\n',
      'a'.repeat(64),
      5,
    ],
  },
  accessCookieName: { ...cookieName('access_token'), good: [['sid'], ['__Host-sid'], ['__Secure-sid']] },
  refreshCookieName: cookieName('refresh_token'),
  trustedOrigins: {
    byDefault: [],
    good: [
      [['https://site.test', 'http://localhost:5173']],
      [['capacitor://localhost', 'tauri://localhost', 'ionic://localhost', 'ionic://app.example']],
      [[`chrome-extension://${'abcdefghijklmnop'.repeat(2)}`, 'moz-extension://0f6ab6d5-0b3c-4f5e-9a46-1d5c1e6b2a77']],
      ['["https://site.test"]', ['https://site.test']],
      ['[]', []],
    ],
    bad: [
      ...notAnOrigin.map((origin) => [origin]),
      ['capacitor://localhost/'],
      ['Capacitor://localhost'],
      ['capacitor://localhost:80'],
      ['capacitor://evil.example'],
      ['capacitor://'],
      ['ionic://'],
      ['ionic://*'],
      ['tauri://localhost\n'],
      ['chrome-extension://*'],
      ['chrome-extension://abc'],
      ['moz-extension://abc'],
      ['file://'],
      ['javascript://localhost'],
      'https://site.test',
      '{}',
      '"https://site.test"',
      '[1]',
      [''],
      [undefined],
      [null],
      null,
      '*',
      ['*'],
    ],
  },
  oauthEnabled: flag(false),
  publicUrl: {
    byDefault: '',
    good: [
      ['https://site.test'],
      ['https://site.test:8443'],
      ['http://localhost:3000'],
      ['http://127.0.0.1:3000'],
      ['http://[::1]:3000'],
      ['http://app.localhost'],
    ],
    bad: [...notAnOrigin, 5, null],
  },
  oauthAllowAccountCreation: flag(true),
  oauthLinkByVerifiedEmail: flag(false),
  assumeEmailsProven: flag(false),
  oauthStateCookieName: cookieName('oauth_state'),
  oauthStateTtlSeconds: whole(600, 30, 3_600),
  oauthKeepLastLoginMethod: flag(false),
  oauthSuccessRedirect: redirect,
  oauthErrorRedirect: redirect,
  appRedirects: {
    byDefault: [],
    good: [
      [['https://spa.example.test/signed-in', 'http://localhost:5173/', 'com.example.app:/signed-in', 'com.example.app://in?from=web']],
      ['["https://spa.example.test/"]', ['https://spa.example.test/']],
      ['[]', []],
    ],
    bad: [
      ['https://spa.example.test'],
      ['https://spa.example.test:443/in'],
      ['https://SPA.example.test/in'],
      ['https://user@spa.example.test/in'],
      ['https://spa.example.test/in#top'],
      ['https://spa.example.test/a/../in'],
      ['https://spa.example.test\\in'],
      ['https://*.example.test/in'],
      ['https://spa.example.test/*'],
      ['com.example.app:/*'],
      ['http://127.0.0.1:0/in'],
      ['https:spa.example.test/in'],
      ['http://spa.example.test/in'],
      ['/in'],
      ['//spa.example.test/in'],
      ['myapp:/in'],
      ['myapp://in'],
      ['com.example.app:'],
      ['com.example.app:in'],
      ['Com.Example.App:/in'],
      ['javascript:alert(1)'],
      ['data:text/html,x'],
      [`https://spa.example.test/${'a'.repeat(500)}`],
      ['https://spa.example.test/in', 'https://spa.example.test/in'],
      'https://spa.example.test/in',
      '{}',
      [''],
      [undefined],
      [null],
      null,
    ],
  },
  localAccountsEnabled: flag(true),
  passwordLogin: flag(true),
  unknownDevice: { byDefault: 'off', good: [['off'], ['notice'], ['code']], bad: ['on', true, null], beside: { tokenDelivery: 'cookie' } },
  signupEnabled: flag(true),
  signupMode: { byDefault: 'open', good: [['open'], ['invite'], ['approve']], bad: ['closed', 'invited', true, null] },
  invitationsEnabled: flag(false),
  invitationUrlTemplate: template,
  accountDeletion: { byDefault: 'off', good: [['soft'], ['immediate'], ['off']], bad: ['on', true, null] },
  accountDeletionDays: whole(30, 1, 365),
  accountRestoreUrlTemplate: template,
  signupWith: {
    byDefault: ['password'],
    good: [[['password']], ['["password"]', ['password']]],
    bad: [
      [],
      '[]',
      'passkeys',
      ['email'],
      ['password', 'password'],
      ['password', 'email'],
      '["password","passkey","passkey"]',
      [''],
      [null],
      [undefined],
      {},
      null,
    ],
  },
  autoActivate: flag(false),
  returnTokenInResponse: flag(false),
  linksInProduction: flag(false),
  activationTtlSeconds: whole(604_800, 1, 2_592_000),
  passwordResetTtlSeconds: whole(3_600, 1, 86_400),
  emailVerificationTtlSeconds: whole(86_400, 1, 2_592_000),
  emailChangeTtlSeconds: whole(3_600, 1, 604_800),
  activationUrlTemplate: template,
  passwordResetUrlTemplate: template,
  emailVerificationUrlTemplate: template,
  emailChangeUrlTemplate: template,
  undoSeconds: whole(604_800, 0, 2_592_000),
  undoUrlTemplate: template,
  singleActiveToken: flag(true),
  emailLogin: { byDefault: 'off', good: [['off'], ['link'], ['code'], ['both']], bad: ['on', true, null] },
  emailLoginTtlSeconds: whole(600, 60, 3_600),
  emailLoginUrlTemplate: template,
  emailLoginSilent: flag(false),
  emailLoginSignup: flag(false, { emailLogin: 'code' }),
  mailedCodes: { byDefault: 'off', good: [['off'], ['both']], bad: ['on', 'code', true, null] },
  passwordMinLength: whole(12, 8, 64),
  passwordMaxBytes: whole(1_024, 64, 4_096),
  passwordRequireComplexity: flag(false),
  revealTakenEmail: flag(false),
  activationBinding: { byDefault: 'lenient', good: [['lenient'], ['strict']], bad: ['loose', true, null] },
  mfaEnabled: flag(false, { mfaIssuer: 'Acme' }),
  mfaIssuer: { byDefault: null, good: [['Acme'], ['Ação & Cia'], [null]], bad: ['Acme:Dev', 'a\nb', 'a'.repeat(65), 5] },
  passkeysEnabled: flag(false, { publicUrl: 'https://app.example.com', webauthnRpName: 'Acme' }),
  webauthnRpId: {
    byDefault: null,
    good: [['example.com'], ['localhost'], [null]],
    bad: ['Example.com', 'https://example.com', 'example.com:443', '192.0.2.1', '[::1]', 'a b', 5],
  },
  webauthnRpName: { byDefault: null, good: [['Acme'], ['Ação & Cia'], [null]], bad: ['Acme:Dev', 'a\nb', 'a'.repeat(65), 5] },
  webauthnOrigins: {
    byDefault: [],
    good: [[[`android:apk-key-hash:${'a'.repeat(43)}`, 'https://app.example.com']], ['[]', []]],
    bad: [['android:apk-key-hash:short'], ['http://app.example.com'], ['https://app.example.com/'], 'https://bad.example', [5], null],
  },
  mfaRecoveryCodesCount: whole(10, 2, 50),
  mfaTokenTtlSeconds: whole(300, 30, 900),
  mfaVerifyWindow: whole(1, 0, 2),
  trustedDeviceDays: whole(0, 0, 90, { tokenDelivery: 'cookie', mfaEnabled: true, mfaIssuer: 'Example' }),
  mfaSecretKey: {
    byDefault: null,
    good: [[key], [`${key},${key.replace('AB', 'CD')}`], [null]],
    bad: [
      'AAAA',
      Buffer.alloc(31, 7).toString('base64'),
      Buffer.alloc(33, 7).toString('base64'),
      Buffer.alloc(32).toString('base64'),
      `${key},`,
      `${key}!`,
      5,
    ],
  },
  realm: { byDefault: '', good: [['staff'], ['a-1'], ['']], bad: ['two words', 'a_b', 'a'.repeat(41), 7, {}] },
  freshSessionSeconds: { byDefault: 900, good: [[0], ['0', 0], [60], ['86400', 86_400]], bad: [1, 59, 86_401, -1, 60.5, 'x'] },
  youngCredentialSeconds: whole(86_400, 0, 604_800),
  accessTokenSessionClaims: flag(true),
  accessTokenIssuer: {
    byDefault: null,
    good: [[issuer], ['https://id.example.test/'], ['http://localhost:3000/auth']],
    bad: ['id.example.test', '/auth', 'http://id.example.test', `${issuer}?a=b`, `${issuer}#a`, 'https://ana@id.example.test', 1, [issuer]],
    beside: { accessTokenAudience: 'api' },
  },
  accessTokenAudience: {
    byDefault: null,
    good: [['api'], ['["api","https://api.example.test"]', ['api', 'https://api.example.test']], [['api']]],
    bad: ['two words', 'a'.repeat(201), [], ['api', 'api'], [''], [1], 7, {}],
    beside: { accessTokenIssuer: issuer },
  },
  accessTokenClientId: { byDefault: null, good: [['shop'], [null]], bad: ['two words', 'a'.repeat(201), 7] },
  acceptLegacyAccessTokens: flag(false),
  backendLinks: flag(false),
  pagesEnabled: { ...flag(false), beside: { tokenDelivery: 'cookie' } },
  loginUrl: { ...redirect, beside: {} },
  logoutRedirect: { ...redirect, beside: {} },
  defaultLocale: { byDefault: 'en-US', good: [['en-US'], ['pt-BR'], ['fr-CA']], bad: ['english', 'pt_BR', 'x-klingon', null] },
  sessionTtlSeconds: whole(86_400, 1, 31_536_000),
  sessionMaxSeconds: whole(2_592_000, 1, 315_360_000, { sessionTtlSeconds: 1 }),
  maxSessionsPerUser: whole(100, 0, 10_000),
  sessionCookieName: { ...cookieName('auth_session'), good: [['sid'], ['__Host-sid']] },
  openapiEnabled: flag(false),
  rememberedTokens: whole(10_000, 0, 100_000),
  unitTimeoutSeconds: whole(30, 1, 300),
  liveSessionPollSeconds: whole(5, 0, 300),
  mailConcurrency: whole(5, 1, 100),
  timingGridMilliseconds: whole(500, 0, 5_000),
}

describe.each(Object.entries(table))('setting %s', (name, { byDefault, good, bad, beside }) => {
  const setting = name as keyof Settings // the table has exactly these keys

  test('has its default when it is left out, undefined or an empty string', () => {
    expect(resolve({})[setting]).toEqual(byDefault)
    if (setting === 'jwtSecret') return
    expect(resolve({ [setting]: undefined })[setting]).toEqual(byDefault)
    expect(resolve({ [setting]: '' })[setting]).toEqual(byDefault)
  })

  test.each(good)('accepts %j', (given, becomes = given) => {
    expect(resolve({ ...beside, [setting]: given })[setting]).toEqual(becomes)
  })

  test.each(bad.map((value) => [value]))('refuses %j by name and never repeats it', (value) => {
    const message = refusalOf({ ...beside, [setting]: value })
    expect(message).toContain(setting)
    if (typeof value === 'string' && value.length > 7 && !/^(?:constructor|csrf_token)$/.test(value)) expect(message).not.toContain(value)
  })

  test('has a variable of its own in the environment, named by the rule', () => {
    const others = settingNames.filter((other) => environmentVariable(other) === environmentVariable(setting))
    expect(others).toEqual([setting])
    expect(environmentVariable(setting)).toMatch(/^(AUTH_[A-Z]+(_[A-Z]+)*|OAUTH_REDIRECT_BASE_URL)$/)
  })
})

function refusalOf(settings: Record<string, unknown>, environment = production): string {
  try {
    resolve(settings, environment)
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError)
    return (error as Error).message // checked above
  }
  throw new Error(`accepted: ${inspect(settings)}`)
}

test('an unknown setting is refused with its name and the nearest known one', () => {
  expect(refusalOf({ signUpEnabled: true })).toBe(
    'Unknown setting "signUpEnabled"; the nearest known one is signupEnabled. See docs/troubleshooting.md#unknown-names',
  )
  expect(refusalOf({ acessTokenTtl: 1 })).toContain('accessTokenTtlSeconds')
  expect(refusalOf({ AUTH_MFA_ISSUER: 'Acme' })).toContain('the nearest known one is mfaIssuer')
  expect(refusalOf({ constructor: 1 })).toContain('Unknown setting "constructor"')
  expect(refusalOf({ [`x${'y'.repeat(500)}`]: 1 }).length).toBeLessThan(200)
})

test('a key named __proto__, as JSON can carry it, is an unknown setting', () => {
  const settings: RouterSettings = JSON.parse(`{ "jwtSecret": "${jwtSecret}", "__proto__": { "oauthEnabled": true } }`)
  expect(() => resolveSettings(settings, production)).toThrow('Unknown setting "__proto__"')
})

test('settings that are no object are refused', () => {
  for (const settings of [null, undefined, 'text', []]) {
    // wrong on purpose
    expect(() => resolveSettings(settings as unknown as RouterSettings, production)).toThrow(ConfigurationError)
  }
})

test('without a secret nothing is built, and the refusal says how to make one', () => {
  expect(() => resolveSettings({} as RouterSettings, production)).toThrow(
    /jwtSecret \(AUTH_JWT_SECRET\) must be at least 32 random bytes.*openssl rand/,
  )
  expect(() => resolveSettings({ jwtSecret: '' }, production)).toThrow(/AUTH_JWT_SECRET/)
})

test('a wrong entry of a list is named by its place, and never repeated', () => {
  const weak = 'a'.repeat(64)
  const message = refusalOf({ jwtSecret: [jwtSecret, weak, otherSecret, jwtSecret] })
  expect(message).toMatch(
    /^Setting jwtSecret \(AUTH_JWT_SECRET\) must be at least 32 random bytes.* Wrong: entry 2, entry 4\. See docs\/troubleshooting\.md#secret$/,
  )
  for (const secret of [jwtSecret, otherSecret, weak]) expect(message).not.toContain(secret)
})

test('every wrong setting is named in one go', () => {
  const message = refusalOf({ accessTokenTtlSeconds: 0, cookieSecure: 'perhaps', oauthRedirectBaseUrl: 'nowhere' })
  expect(message.split('\n')).toHaveLength(3)
  for (const line of message.split('\n')) expect(line).toMatch(/ See docs\/troubleshooting\.md#a-wrong-setting$/)
  expect(message).toContain('AUTH_ACCESS_TOKEN_TTL_SECONDS')
  expect(message).toContain('AUTH_COOKIE_SECURE')
  expect(message).toContain('OAUTH_REDIRECT_BASE_URL')
})

test('a refusal holds no submitted value, not in its cause or properties either', () => {
  const canary = 'Canary-7f3e'
  for (const name of settingNames) {
    try {
      resolve({ [name]: `${canary} ; : {token}{token}` })
    } catch (error) {
      expect(inspect(error, { depth: 10, showHidden: true })).not.toContain(canary)
      continue
    }
    expect.unreachable(`${name} accepted the canary`)
  }
})

test('the result is complete and frozen, its lists too', () => {
  const settings = resolve({ trustedOrigins: ['https://site.test'], jwtKeys: [jwtKey] })
  expect(Object.isFrozen(settings.jwtKeys) && Object.isFrozen(settings.jwtKeys?.[0])).toBe(true)
  expect(Object.keys(settings).sort()).toEqual([...settingNames].sort())
  expect(Object.isFrozen(settings)).toBe(true)
  expect(Object.isFrozen(settings.trustedOrigins)).toBe(true)
  expect(Object.isFrozen(resolve({ jwtSecret: [jwtSecret] }).jwtSecret)).toBe(true)
})

test('the list a host passed stays its own', () => {
  const [trustedOrigins, secrets] = [['https://site.test'], [jwtSecret]]
  const settings = resolve({ trustedOrigins, jwtSecret: secrets })
  trustedOrigins.push('https://evil.example')
  secrets.push(otherSecret)
  expect(settings.trustedOrigins).toEqual(['https://site.test'])
  expect(settings.jwtSecret).toEqual([jwtSecret])
})

test('resolved settings resolve to themselves', () => {
  const settings = resolve({ signupEnabled: '0', trustedOrigins: '["https://site.test"]', accessTokenTtlSeconds: '60' })
  expect(resolveSettings(settings, { production: false })).toEqual(settings)
})

test('oauthAllowAccountCreation inherits signupEnabled unless it is given', () => {
  expect(resolve({ signupEnabled: false }).oauthAllowAccountCreation).toBe(false)
  expect(resolve({ signupEnabled: 'false' }).oauthAllowAccountCreation).toBe(false)
  expect(resolve({ signupEnabled: true }).oauthAllowAccountCreation).toBe(true)
  expect(resolve({ signupEnabled: false, oauthAllowAccountCreation: true }).oauthAllowAccountCreation).toBe(true)
  expect(resolve({ signupEnabled: true, oauthAllowAccountCreation: 'false' }).oauthAllowAccountCreation).toBe(false)
})

test('invitations are on by default in sign-up mode invite only', () => {
  expect(resolve({ signupMode: 'invite' }).invitationsEnabled).toBe(true)
  expect(resolve({ signupMode: 'open' }).invitationsEnabled).toBe(false)
  expect(resolve({ signupMode: 'open', invitationsEnabled: 'true' }).invitationsEnabled).toBe(true)
})

test('sign-up mode invite with invitations switched off is refused', () => {
  expect(refusalOf({ signupMode: 'invite', invitationsEnabled: false })).toContain('invitationsEnabled (AUTH_INVITATIONS_ENABLED)')
})

test('sessionMaxSeconds is 30 days by default, and never below sessionTtlSeconds', () => {
  expect(resolve({ sessionTtlSeconds: 2_592_000 }).sessionMaxSeconds).toBe(2_592_000)
  expect(resolve({ sessionTtlSeconds: 2_592_001 }).sessionMaxSeconds).toBe(2_592_001)
  expect(resolve({ sessionTtlSeconds: '31536000' }).sessionMaxSeconds).toBe(31_536_000)
})

test('the OpenAPI document is on by default outside production only', () => {
  expect(resolve({}, { production: true }).openapiEnabled).toBe(false)
  expect(resolve({}, { production: false }).openapiEnabled).toBe(true)
  expect(resolve({ openapiEnabled: true }, { production: true }).openapiEnabled).toBe(true)
  expect(resolve({ openapiEnabled: false }, { production: false }).openapiEnabled).toBe(false)
})

describe('settings that do not go together', () => {
  test('SameSite=None without Secure', () => {
    expect(refusalOf({ cookieSamesite: 'none', cookieSecure: false })).toContain('cookieSamesite')
    expect(resolve({ cookieSamesite: 'none' }).cookieSamesite).toBe('none')
  })

  test.each(['accessCookieName', 'refreshCookieName', 'oauthStateCookieName', 'sessionCookieName'])(
    '%s with a prefix and cookieSecure false',
    (name) => {
      for (const prefix of ['__Secure-', '__Host-', '__secure-', '__HOST-', '__Http-']) {
        expect(refusalOf({ [name]: `${prefix}sid`, cookieSecure: false })).toContain(name)
      }
    },
  )

  test('__Host- with a domain, or on a cookie whose path is the router', () => {
    expect(refusalOf({ accessCookieName: '__Host-at', cookieDomain: 'example.com' })).toContain('cookieDomain')
    expect(refusalOf({ refreshCookieName: '__Host-rt' })).toContain('__Secure-')
    expect(refusalOf({ oauthStateCookieName: '__host-st' })).toContain('__Secure-')
  })

  test('two cookies of one name', () => {
    expect(refusalOf({ accessCookieName: 'same', refreshCookieName: 'same' })).toContain('must differ')
    expect(refusalOf({ sessionCookieName: 'csrf_token' })).toContain('must differ')
  })

  test('redirects with bearer delivery', () => {
    expect(refusalOf({ oauthSuccessRedirect: '/in' })).toContain('oauthSuccessRedirect')
    expect(refusalOf({ oauthErrorRedirect: '/out' })).toContain('oauthErrorRedirect')
    expect(resolve({ oauthErrorRedirect: '/out', tokenDelivery: 'both' }).oauthErrorRedirect).toBe('/out')
  })

  test('a second factor without the name authenticator apps show', () => {
    expect(refusalOf({ mfaEnabled: true })).toContain('mfaIssuer')
  })

  test('an absolute end of server-side sessions before their idle end', () => {
    expect(refusalOf({ sessionMaxSeconds: 86_399 })).toContain('sessionMaxSeconds (AUTH_SESSION_MAX_SECONDS)')
    expect(refusalOf({ sessionTtlSeconds: 601, sessionMaxSeconds: 600 })).toContain('sessionTtlSeconds')
    expect(resolve({ sessionTtlSeconds: 600, sessionMaxSeconds: 600 }).sessionMaxSeconds).toBe(600)
  })

  test('a grace window that is not below the access token lifetime', () => {
    expect(refusalOf({ refreshReuseGraceSeconds: 30, accessTokenTtlSeconds: 30 })).toContain('refreshReuseGraceSeconds')
    expect(resolve({ refreshReuseGraceSeconds: 29, accessTokenTtlSeconds: 30 }).refreshReuseGraceSeconds).toBe(29)
    expect(resolve({ refreshReuseGraceSeconds: 0, accessTokenTtlSeconds: 1 }).accessTokenTtlSeconds).toBe(1)
  })
})
