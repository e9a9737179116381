import Joi from 'joi'
import { areSealingKeys } from '../encryption'
import { isLanguageTag } from '../texts/phrase-book'
import type { JwtKey, Settings } from './every-setting'
import {
  isAbsoluteAddress,
  isAppRedirect,
  isLinkTemplate,
  isOrigin,
  isPasskeyOrigin,
  isRedirectTarget,
  isTrustableOrigin,
} from './web-address'

/** Joi's types have no readonly list. */
type Checked = Omit<
  Settings,
  'jwtSecret' | 'trustedOrigins' | 'webauthnOrigins' | 'appRedirects' | 'jwtKeys' | 'accessTokenAudience' | 'signupWith'
> & {
  accessTokenAudience: string | string[] | null
  jwtSecret: string | string[]
  trustedOrigins: string[]
  webauthnOrigins: string[]
  appRedirects: string[]
  jwtKeys: JwtKey[] | null
  signupWith: ('password' | 'passkey')[]
}

/** The description completes "… must be". Errors have only it and the name, because Joi's own messages contain the value. */
const rules: Joi.StrictSchemaMap<Checked> = {
  jwtSecret: Joi.alternatives()
    .conditional(Joi.array(), {
      // biome-ignore lint/suspicious/noThenProperty: Joi's name for it
      then: Joi.array().items(text('a secret', isStrongSecret)).sparse(false).min(1).max(10).unique(),
      otherwise: text('a secret', (secret) => isStrongSecret(secret) && !isBrokenList(secret)),
    })
    .required()
    .description(
      'at least 32 random bytes, not a placeholder (for example the output of `openssl rand -base64 48`); or a list (in the environment: a JSON list) of 1 to 10 such secrets, each different: the first makes, all verify',
    ),
  jwtKeys: Joi.array()
    .items(jwtKey())
    .sparse(false)
    .min(1)
    .max(20)
    .unique('kid')
    .allow(null)
    .default(null)
    .description(
      "a list (in the environment: a JSON list) of 1 to 20 keys { kid, alg, privateKey, publicKey }: kid unique, 1 to 128 visible ASCII characters without quotes and backslash; alg 'ES256', 'RS256' or 'PS256'; the keys PEM text, of which the first key needs privateKey and a retired one may keep only publicKey",
    ),
  realm: Joi.string()
    .allow('')
    .pattern(/^[A-Za-z0-9-]{1,40}$/)
    .default('')
    .description("at most 40 letters, digits and '-', such as staff"),
  accessTokenTtlSeconds: whole(900, 1, 86_400),
  refreshTokenTtlSeconds: whole(604_800, 1, 31_536_000),
  refreshFamilyTtlSeconds: whole(2_592_000, 1, 315_360_000),
  refreshReuseGraceSeconds: whole(0, 0, 60),
  tokenDelivery: oneOf('bearer', 'cookie', 'both', 'session'),
  cookieSecure: flag(true),
  cookieSamesite: oneOf('lax', 'strict', 'none'),
  cookieDomain: optional('a host name without scheme, port or leading dot', isHostName),
  accessCookieName: cookieName('access_token'),
  refreshCookieName: cookieName('refresh_token'),
  trustedOrigins: Joi.array()
    .items(text('an origin', isTrustableOrigin))
    .sparse(false)
    .max(100)
    .default([])
    .description(
      `a list (in the environment: a JSON list) of origins such as https://app.example.com: no trailing slash, no path, no * (list each origin); ${httpsOnly()}, or an app's: capacitor://localhost, tauri://localhost, ionic://<host>, chrome-extension://<id>, moz-extension://<id>`,
    ),
  oauthEnabled: flag(false),
  publicUrl: text(`an origin such as https://app.example.com: no path, query, fragment, trailing slash or *; ${httpsOnly()}`, isOrigin)
    .allow('')
    .default(''),
  oauthAllowAccountCreation: Joi.boolean().strict().default(Joi.ref('signupEnabled')).description('true or false'),
  oauthLinkByVerifiedEmail: flag(false),
  assumeEmailsProven: flag(false),
  oauthStateCookieName: cookieName('oauth_state'),
  oauthStateTtlSeconds: whole(600, 30, 3_600),
  oauthKeepLastLoginMethod: flag(false),
  oauthSuccessRedirect: redirectTarget(),
  oauthErrorRedirect: redirectTarget(),
  logoutRedirect: redirectTarget(),
  appRedirects: Joi.array()
    .items(text('a URI', isAppRedirect))
    .sparse(false)
    .max(20)
    .unique()
    .default([])
    .description(
      `a list (in the environment: a JSON list) of up to 20 different URIs, each exactly as the app sends it and a browser writes it, without fragment, * and port 0, and of at most 512 characters: an absolute URL with a path, such as https://spa.example.com/signed-in (${httpsOnly()}), or the scheme of a native app in reverse-domain form, such as com.example.app:/signed-in`,
    ),
  localAccountsEnabled: flag(true),
  passwordLogin: flag(true),
  unknownDevice: oneOf('off', 'notice', 'code'),
  signupEnabled: flag(true),
  signupMode: oneOf('open', 'invite', 'approve'),
  invitationsEnabled: Joi.boolean()
    .strict()
    .default(({ signupMode }: Settings) => signupMode === 'invite')
    .description('true or false'),
  invitationUrlTemplate: linkTemplate(),
  signupWith: Joi.array()
    .items(Joi.string().strict().valid('password', 'passkey'))
    .sparse(false)
    .min(1)
    .unique()
    .default(['password'])
    .description("a list (in the environment: a JSON list) of 'password', 'passkey' or both, each once"),
  autoActivate: flag(false),
  returnTokenInResponse: flag(false),
  linksInProduction: flag(false),
  activationTtlSeconds: whole(604_800, 1, 2_592_000),
  passwordResetTtlSeconds: whole(3_600, 1, 86_400),
  emailVerificationTtlSeconds: whole(86_400, 1, 2_592_000),
  emailChangeTtlSeconds: whole(3_600, 1, 604_800),
  activationUrlTemplate: linkTemplate(),
  passwordResetUrlTemplate: linkTemplate(),
  emailVerificationUrlTemplate: linkTemplate(),
  emailChangeUrlTemplate: linkTemplate(),
  undoSeconds: whole(604_800, 0, 2_592_000),
  undoUrlTemplate: linkTemplate(),
  accountDeletion: oneOf('off', 'soft', 'immediate'),
  accountDeletionDays: whole(30, 1, 365),
  accountRestoreUrlTemplate: linkTemplate(),
  singleActiveToken: flag(true),
  emailLogin: oneOf('off', 'link', 'code', 'both'),
  emailLoginTtlSeconds: whole(600, 60, 3_600),
  emailLoginUrlTemplate: linkTemplate(),
  emailLoginSilent: flag(false),
  emailLoginSignup: flag(false),
  mailedCodes: oneOf('off', 'both'),
  passwordMinLength: whole(12, 8, 64),
  passwordMaxBytes: whole(1_024, 64, 4_096),
  passwordRequireComplexity: flag(false),
  revealTakenEmail: flag(false),
  activationBinding: oneOf('lenient', 'strict'),
  mfaEnabled: flag(false),
  mfaIssuer: optional('a name of 1 to 64 characters without a colon', (issuer) => /^[^\p{Cc}:]{1,64}$/u.test(issuer)),
  mfaRecoveryCodesCount: whole(10, 2, 50),
  mfaTokenTtlSeconds: whole(300, 30, 900),
  mfaVerifyWindow: whole(1, 0, 2),
  mfaSecretKey: optional('32 random bytes in base64; several, separated by commas: the first encrypts, all decrypt', areSealingKeys),
  trustedDeviceDays: whole(0, 0, 90),
  passkeysEnabled: flag(false),
  webauthnRpId: optional('a domain in lower case without scheme and port, and no IP address', isDomain),
  webauthnRpName: optional('a name of 1 to 64 characters without a colon', (name) => /^[^\p{Cc}:]{1,64}$/u.test(name)),
  webauthnOrigins: Joi.array()
    .items(text('an origin', isPasskeyOrigin))
    .sparse(false)
    .max(100)
    .unique()
    .default([])
    .description(
      `a list (in the environment: a JSON list) of up to 100 different origins: android:apk-key-hash: and the 43 characters of the certificate's hash in base64url, or an origin such as https://app.example.com; ${httpsOnly()}`,
    ),
  freshSessionSeconds: whole(900, 60, 86_400).allow(0).description('0, or a whole number from 60 to 86400'),
  youngCredentialSeconds: whole(86_400, 0, 604_800),
  accessTokenSessionClaims: flag(true),
  accessTokenIssuer: optional(
    `an absolute URL without query and fragment, at most 200 characters, such as https://app.example.com/auth; ${httpsOnly()}`,
    isIssuer,
  ),
  accessTokenAudience: Joi.alternatives()
    .conditional(Joi.array(), {
      // biome-ignore lint/suspicious/noThenProperty: Joi's name for it
      then: Joi.array().items(text('a name', isTokenName)).sparse(false).min(1).max(20).unique(),
      otherwise: text('a name', isTokenName).allow(null),
    })
    .default(null)
    .description('1 to 200 visible ASCII characters, or a list (in the environment: a JSON list) of 1 to 20 such names, each different'),
  accessTokenClientId: optional('1 to 200 visible ASCII characters', isTokenName),
  acceptLegacyAccessTokens: flag(false),
  backendLinks: flag(false),
  pagesEnabled: flag(false),
  loginUrl: redirectTarget(),
  defaultLocale: text('a language tag such as en-US', isLanguageTag).default('en-US'),
  sessionTtlSeconds: whole(86_400, 1, 31_536_000),
  sessionMaxSeconds: Joi.number()
    .strict()
    .integer()
    .min(1)
    .max(315_360_000)
    .default(({ sessionTtlSeconds }: Settings) => Math.max(2_592_000, sessionTtlSeconds))
    .description('a whole number from 1 to 315360000'),
  maxSessionsPerUser: whole(100, 0, 10_000),
  sessionCookieName: cookieName('auth_session'),
  openapiEnabled: Joi.boolean()
    .strict()
    .default((_, helpers) => helpers.prefs.context?.['production'] !== true)
    .description('true or false'),
  rememberedTokens: whole(10_000, 0, 100_000),
  unitTimeoutSeconds: whole(30, 1, 300),
  liveSessionPollSeconds: whole(5, 0, 300),
  mailConcurrency: whole(5, 1, 100),
  timingGridMilliseconds: whole(500, 0, 5_000),
}

export const settingsSchema = Joi.object<Checked, true>(rules)

export const settingNames = Object.keys(rules) as readonly (keyof Checked)[] // a strict map has exactly these keys

/** Checks only the shape. `KeyObject` later checks the PEM text. */
function jwtKey() {
  const pem = Joi.string().strict().max(16_384)
  return Joi.object<JwtKey>({
    kid: Joi.string()
      .strict()
      .pattern(/^[\x21\x23-\x26\x28-\x5b\x5d-\x7e]{1,128}$/)
      .required(),
    alg: Joi.string().strict().valid('ES256', 'RS256', 'PS256').required(),
    privateKey: pem,
    publicKey: pem,
  }).or('privateKey', 'publicKey')
}

function whole(fallback: number, least: number, most: number) {
  return Joi.number().strict().integer().min(least).max(most).default(fallback).description(`a whole number from ${least} to ${most}`)
}

function flag(fallback: boolean) {
  return Joi.boolean().strict().default(fallback).description('true or false')
}

function oneOf(first: string, ...others: string[]) {
  const quoted = [first, ...others].map((value) => `'${value}'`)
  return Joi.string()
    .valid(first, ...others)
    .default(first)
    .description(`${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`)
}

function text(description: string, isValid: (value: string) => boolean) {
  return Joi.string()
    .strict()
    .custom((value: string, helpers) => (isValid(value) ? value : helpers.error('any.invalid')))
    .description(description)
}

function optional(description: string, isValid: (value: string) => boolean) {
  return text(description, isValid).allow(null).default(null)
}

function redirectTarget() {
  return optional(`an absolute URL or a path that starts with one '/'; ${httpsOnly()}`, isRedirectTarget)
}

function linkTemplate() {
  return optional(`an absolute URL that holds {token} once, after the host; ${httpsOnly()}`, isLinkTemplate)
}

function httpsOnly(): string {
  return 'https, or http on the loopback'
}

/** RFC 6265 section 4.1.1. */
function cookieName(fallback: string) {
  return text("1 to 64 letters, digits or any of !#$%&'*+-.^_`|~", (name) => /^[\w!#$%&'*+.^`|~-]{1,64}$/.test(name)).default(fallback)
}

function isStrongSecret(secret: string): boolean {
  return Buffer.byteLength(secret, 'utf8') >= 32 && !isPlaceholderSecret(secret)
}

/** A shell removed the quotes of a JSON list: `[a,b]`. As one new secret, it would log every person out. */
function isBrokenList(secret: string): boolean {
  return /^\s*\[.*\]\s*$/s.test(secret)
}

/** No query and no fragment (RFC 8414 section 2). */
function isIssuer(issuer: string): boolean {
  return issuer.length <= 200 && !/[?#]/.test(issuer) && isRedirectTarget(issuer) && isAbsoluteAddress(issuer)
}

function isTokenName(name: string): boolean {
  return /^[\x21-\x7e]{1,200}$/.test(name)
}

function isHostName(domain: string): boolean {
  return domain.length <= 253 && /^(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*$/i.test(domain)
}

/** The form that browsers use. A name with digits as its last label is an IP address (WHATWG URL, host parsing). */
function isDomain(domain: string): boolean {
  return isHostName(domain) && domain === domain.toLowerCase() && !/(?:^|\.)\d+$/.test(domain)
}

/** Wrongly rejects less than one in a million random secrets of 32 bytes in hex, base64 or another usual encoding. */
export function isPlaceholderSecret(secret: string): boolean {
  return hasFewCharacters(secret) || isRepetition(secret) || isSequence(secret) || isSampleText(secret)
}

function hasFewCharacters(secret: string): boolean {
  return new Set(secret).size < 6
}

/** A pattern shorter than 32 characters, such as 'changemechangemechangemechangeme'. */
function isRepetition(secret: string): boolean {
  for (let period = 1; period < 32 && period * 2 <= secret.length; period++) {
    if (secret.startsWith(secret.slice(period))) return true
  }
  return false
}

/** At least three of four characters equal the one before, or differ by 1 in ASCII: 'abcdefghijklmnopqrstuvwxyz012345'. */
function isSequence(secret: string): boolean {
  let steps = 0
  for (let index = 1; index < secret.length; index++) {
    if (Math.abs(secret.charCodeAt(index) - secret.charCodeAt(index - 1)) <= 1) steps++
  }
  return steps * 4 >= (secret.length - 1) * 3
}

const sampleWords = new RegExp(
  [
    ...['placeholder', 'passphrase', 'production', 'characters', 'changeit', 'changeme', 'password', 'insecure', 'replace', 'default'],
    ...['example', 'sample', 'secret', 'please', 'signing', 'random', 'string', 'change', 'super', 'least', 'bytes', 'minimum', 'chars'],
    ...['private', 'secure', 'dummy', 'value', 'token', 'access', 'refresh', 'auth', 'your', 'here', 'this', 'must', 'long', 'very'],
    ...[
      'with',
      'jwt',
      'key',
      'bit',
      'dev',
      'the',
      'not',
      'for',
      'use',
      'and',
      'enter',
      'insert',
      'todo',
      'my',
      'me',
      'at',
      'in',
      'be',
      'is',
    ],
  ].join('|'),
  'g',
)

/** Mostly words of sample files, such as 'your-secret-key-please-change-it-in-production'. */
function isSampleText(secret: string): boolean {
  const left = secret
    .toLowerCase()
    .replace(sampleWords, '')
    .replace(/[^a-z0-9]|123456789|12345|1234|123/g, '')
  return /^[\x20-\x7e]*$/.test(secret) && left.length < 12
}
