import { afterEach, describe, expect, test, vi } from 'vitest'
import { isProduction, settingsFromEnv } from '../../src/core/config/environment'
import { environmentVariable, resolveSettings } from '../../src/core/config/settings'
import { settingNames } from '../../src/core/config/settings-schema'
import { ConfigurationError } from '../../src/core/errors'

const secret = 'Zq8vR2nX5tLw0cJ7hYb3KdMf9sPg6aUe'

afterEach(() => {
  vi.unstubAllEnvs()
})

test('a variable is the setting in capitals behind AUTH_; the older name of publicUrl alone has no prefix', () => {
  expect(environmentVariable('oauthStateTtlSeconds')).toBe('AUTH_OAUTH_STATE_TTL_SECONDS')
  expect(environmentVariable('oauthRedirectBaseUrl')).toBe('OAUTH_REDIRECT_BASE_URL')
  expect(environmentVariable('cookieSamesite')).toBe('AUTH_COOKIE_SAMESITE')
  expect(environmentVariable('jwtSecret')).toBe('AUTH_JWT_SECRET')
})

test('every setting is read from its variable, as text', () => {
  const env = Object.fromEntries(settingNames.map((setting) => [environmentVariable(setting), `value of ${setting}`]))
  expect(settingsFromEnv(env)).toEqual(Object.fromEntries(settingNames.map((setting) => [setting, `value of ${setting}`])))
})

test('an empty variable is unset and others are not looked at', () => {
  const env = {
    AUTH_JWT_SECRET: secret,
    AUTH_MFA_ISSUER: '',
    AUTH_LOGIN_URL: undefined,
    AUTH_SOMETHING_ELSE: 'x',
    PATH: '/bin',
    AUTH_OAUTH_REDIRECT_BASE_URL: 'x',
  }
  expect(settingsFromEnv(env)).toEqual({ jwtSecret: secret })
})

test('without an argument it reads the environment of the process', () => {
  vi.stubEnv('AUTH_DEFAULT_LOCALE', 'pt-BR')
  expect(settingsFromEnv().defaultLocale).toBe('pt-BR')
})

test('what the environment says is checked like what code says', () => {
  const env = {
    AUTH_JWT_SECRET: secret,
    AUTH_ACCESS_TOKEN_TTL_SECONDS: '3600',
    AUTH_SIGNUP_ENABLED: 'false',
    AUTH_TOKEN_DELIVERY: 'both',
    AUTH_TRUSTED_ORIGINS: '["https://app.example.com"]',
    OAUTH_REDIRECT_BASE_URL: 'https://id.example.com',
  }
  expect(resolveSettings(settingsFromEnv(env), { production: true })).toMatchObject({
    accessTokenTtlSeconds: 3600,
    signupEnabled: false,
    oauthAllowAccountCreation: false,
    tokenDelivery: 'both',
    trustedOrigins: ['https://app.example.com'],
    publicUrl: 'https://id.example.com',
  })
  expect(() => resolveSettings(settingsFromEnv({ ...env, AUTH_ACCESS_TOKEN_TTL_SECONDS: '15m' }), { production: true })).toThrow(
    'AUTH_ACCESS_TOKEN_TTL_SECONDS',
  )
})

describe('publicUrl and its older name', () => {
  const [ours, others] = ['https://app.example.com', 'https://api.example.com']
  const resolved = (settings: object) => resolveSettings({ jwtSecret: secret, ...settings }, { production: true }).publicUrl

  test('either name sets it, in code and in the environment', () => {
    expect(resolved({ publicUrl: ours })).toBe(ours)
    expect(resolved({ oauthRedirectBaseUrl: ours })).toBe(ours)
    expect(resolved(settingsFromEnv({ AUTH_PUBLIC_URL: ours }))).toBe(ours)
    expect(resolved(settingsFromEnv({ OAUTH_REDIRECT_BASE_URL: ours }))).toBe(ours)
  })

  test('equal values are one, and an empty one is unset', () => {
    expect(resolved({ publicUrl: ours, oauthRedirectBaseUrl: ours })).toBe(ours)
    expect(resolved({ publicUrl: '', oauthRedirectBaseUrl: ours })).toBe(ours)
    expect(resolved({ publicUrl: ours, oauthRedirectBaseUrl: undefined })).toBe(ours)
  })

  test('different values are refused by both names', () => {
    expect(() => resolved({ publicUrl: ours, oauthRedirectBaseUrl: others })).toThrow(
      /^publicUrl \(AUTH_PUBLIC_URL\) and oauthRedirectBaseUrl \(OAUTH_REDIRECT_BASE_URL\) are two names of one setting/,
    )
  })
})

describe('production', () => {
  test.each([
    [undefined, true],
    ['', true],
    ['production', true],
    ['staging', true],
    ['Development', true],
    ['development', false],
    ['test', false],
  ])('NODE_ENV %j: %j', (value, expected) => {
    vi.stubEnv('NODE_ENV', value)
    expect(isProduction()).toBe(expected)
  })

  test('the option wins over NODE_ENV', () => {
    vi.stubEnv('NODE_ENV', 'production')
    expect(isProduction('development')).toBe(false)
    expect(isProduction('test')).toBe(false)
    vi.stubEnv('NODE_ENV', 'development')
    expect(isProduction('production')).toBe(true)
  })

  test('an option that is none of the three is refused', () => {
    for (const environment of ['prod', '', 'constructor', null, true]) {
      // wrong on purpose
      expect(() => isProduction(environment as 'test')).toThrow(ConfigurationError)
    }
  })
})
