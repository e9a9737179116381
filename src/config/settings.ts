import type Joi from 'joi'
import { ConfigurationError } from '../errors'
import type { JwtAlgorithm } from '../keys'
import { nearestName } from './nearest-name'
import { settingsConflicts } from './settings-conflicts'
import { settingNames, settingsSchema } from './settings-schema'

/** Plain data, complete and frozen after `resolveSettings`. Every field has an environment variable (docs/configuration.md). */
export interface Settings {
  readonly jwtSecret: string | readonly string[]
  readonly jwtKeys: readonly JwtKey[] | null
  readonly accessTokenTtlSeconds: number
  readonly refreshTokenTtlSeconds: number
  readonly refreshFamilyTtlSeconds: number
  readonly refreshReuseGraceSeconds: number
  readonly tokenDelivery: 'bearer' | 'cookie' | 'both'
  readonly cookieSecure: boolean
  readonly cookieSamesite: 'lax' | 'strict' | 'none'
  readonly cookieDomain: string | null
  readonly accessCookieName: string
  readonly refreshCookieName: string
  readonly trustedOrigins: readonly string[]
  readonly oauthEnabled: boolean
  readonly oauthRedirectBaseUrl: string
  readonly oauthAllowAccountCreation: boolean
  readonly oauthLinkByVerifiedEmail: boolean
  readonly assumeEmailsProven: boolean
  readonly oauthStateCookieName: string
  readonly oauthStateTtlSeconds: number
  readonly oauthKeepLastLoginMethod: boolean
  readonly oauthSuccessRedirect: string | null
  readonly oauthErrorRedirect: string | null
  readonly signupEnabled: boolean
  readonly autoActivate: boolean
  readonly returnTokenInResponse: boolean
  readonly linksInProduction: boolean
  readonly activationTtlSeconds: number
  readonly passwordResetTtlSeconds: number
  readonly emailVerificationTtlSeconds: number
  readonly emailChangeTtlSeconds: number
  readonly activationUrlTemplate: string | null
  readonly passwordResetUrlTemplate: string | null
  readonly emailVerificationUrlTemplate: string | null
  readonly emailChangeUrlTemplate: string | null
  readonly singleActiveToken: boolean
  readonly passwordMinLength: number
  readonly passwordMaxBytes: number
  readonly passwordRequireComplexity: boolean
  readonly revealTakenEmail: boolean
  readonly mfaEnabled: boolean
  readonly mfaIssuer: string | null
  readonly mfaRecoveryCodesCount: number
  readonly mfaTokenTtlSeconds: number
  readonly mfaVerifyWindow: number
  readonly mfaSecretKey: string | null
  readonly reauthenticate: boolean
  readonly backendLinks: boolean
  readonly loginUrl: string | null
  readonly defaultLocale: 'en-US' | 'pt-BR'
  readonly sessionTtlSeconds: number
  readonly sessionMaxSeconds: number
  readonly sessionCookieName: string
  readonly openapiEnabled: boolean
  readonly rememberedTokens: number
  readonly unitTimeoutSeconds: number
}

/** A key pair for access tokens. Keys are PEM: PKCS#8 for the private one, SPKI for the public one, as openssl writes them. */
export interface JwtKey {
  /** Names the key in tokens and in the key set; unique. */
  readonly kid: string
  readonly alg: JwtAlgorithm
  /** Needed in the first key, which signs. */
  readonly privateKey?: string | undefined
  /** Enough for a retired key; beside a private key it must be its own. */
  readonly publicKey?: string | undefined
}

/**
 * Settings as a host gives them: a field left out, `undefined` or an empty string has its default. Text stands for
 * numbers (`'3600'`), booleans (`'true'`, `'false'`, `'1'`, `'0'`) and lists (JSON), as it comes from the environment.
 */
export type SettingsInput = { readonly [Name in keyof Settings]?: Settings[Name] | string | undefined }

/** `oauthStateTtlSeconds` -> `AUTH_OAUTH_STATE_TTL_SECONDS`; the base URL alone has no prefix. */
export function environmentVariable(setting: keyof Settings): string {
  const upper = setting.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()
  return setting === 'oauthRedirectBaseUrl' ? upper : `AUTH_${upper}`
}

/**
 * Checks everything, fills in the defaults and freezes the result. `production` decides the defaults that differ there.
 *
 * @throws ConfigurationError naming each wrong setting and what it must be, never its value.
 */
export function resolveSettings(input: SettingsInput, environment: { production: boolean }): Settings {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) throw new ConfigurationError('settings must be an object.')
  refuseUnknown(Object.keys(input))
  const { value, error } = settingsSchema.validate(convertText(input), { abortEarly: false, context: environment })
  if (error) throw new ConfigurationError(refusals(error).join('\n'))
  const conflicts = settingsConflicts(value)
  if (conflicts.length > 0) throw new ConfigurationError(conflicts.join('\n'))
  return frozen(value)
}

/** A copy that nobody can change, the host's own lists included. */
export function frozen(settings: Settings): Settings {
  return Object.freeze({
    ...settings,
    jwtSecret: Array.isArray(settings.jwtSecret) ? Object.freeze([...settings.jwtSecret]) : settings.jwtSecret,
    trustedOrigins: Object.freeze([...settings.trustedOrigins]),
    jwtKeys: frozenKeys(settings.jwtKeys),
  })
}

function frozenKeys(keys: readonly JwtKey[] | null): readonly JwtKey[] | null {
  return keys && Object.freeze(keys.map((key) => Object.freeze({ ...key })))
}

function refuseUnknown(names: readonly string[]): void {
  for (const name of names) {
    if (settingNames.some((known) => known === name)) continue
    throw new ConfigurationError(
      `Unknown setting ${JSON.stringify(name.slice(0, 64))}; the nearest known one is ${nearestName(name, settingNames)}.`,
    )
  }
}

export function convertText(input: SettingsInput): Record<string, unknown> {
  const given = settingNames.filter((name) => Object.hasOwn(input, name) && input[name] !== '' && input[name] !== undefined)
  return Object.fromEntries(given.map((name) => [name, fromText(settingsSchema.extract(name).type, input[name])]))
}

const booleans: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['1', true],
  ['false', false],
  ['0', false],
])

/** Explicit and narrow: what is not plainly a number, a boolean or a list stays text, and the schema refuses it. */
function fromText(type: string | undefined, value: unknown): unknown {
  if (typeof value !== 'string') return value
  if (type === 'number') return /^(0|[1-9]\d{0,14})$/.test(value) ? Number(value) : value
  if (type === 'boolean') return booleans.get(value) ?? value
  if (type === 'array') return parseJson(value)
  if (type === 'alternatives') return listOr(value)
  return value
}

/** One text or a list of texts. */
function listOr(text: string): unknown {
  const parsed = parseJson(text)
  return Array.isArray(parsed) ? parsed : text
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text // not a list, so the schema refuses it and names the setting
  }
}

/** Only names and descriptions: Joi's messages and contexts hold the values. */
export function refusals(error: Joi.ValidationError): string[] {
  const names = new Set(error.details.map(({ path }) => settingNames.find((name) => name === path[0])))
  return [...names].flatMap((name) => (name ? [`${refusal(name)}${entries(error, name)}`] : []))
}

/** Which entries of a list are wrong, by place. */
function entries({ details }: Joi.ValidationError, name: keyof Settings): string {
  const places = new Set(details.flatMap(({ path: [first, place] }) => (first === name && typeof place === 'number' ? [place + 1] : [])))
  return places.size === 0 ? '' : ` Wrong: entry ${[...places].join(', entry ')}.`
}

function refusal(name: keyof Settings): string {
  const flags = settingsSchema.extract(name).describe().flags as { description?: string } | undefined // what Joi documents as an object
  return `Setting ${name} (${environmentVariable(name)}) must be ${flags?.description}.`
}
