import type { OAuthUser } from './provider-client'
import { unusableIdentity } from './provider-refusal'
import { isPlainObject } from './provider-request'

/**
 * What a provider said of a person, made safe to store: a subject that is a string and stays itself in any database,
 * a verification flag that is never guessed, a name and a picture fit to show. The email passes through as it came
 * (or null when it is not a string): whether it counts is for the login to say, by the one email rule.
 *
 * @throws OAuthError when there is no usable subject
 */
export function normalizeProfile(provider: string, profile: unknown): OAuthUser {
  const { subject, email, emailVerified, name, picture, raw } = isPlainObject(profile) ? profile : {}
  return {
    provider,
    subject: requireSubject(provider, subject),
    email: typeof email === 'string' ? email : null,
    emailVerified: verificationOf(emailVerified),
    name: displayName(name),
    picture: pictureUrl(picture),
    raw: isPlainObject(raw) ? raw : {},
  }
}

/**
 * OpenID Connect Core section 2: at most 255 characters, case sensitive. A number is taken where it is exact. Control
 * characters and lone surrogates are refused: a database may alter them, and two people would become one.
 *
 * @throws OAuthError
 */
export function requireSubject(provider: string, value: unknown): string {
  const subject = Number.isSafeInteger(value) ? String(value) : value
  if (typeof subject === 'string' && subject.length >= 1 && subject.length <= 255 && !/[\p{Cc}\p{Cs}]/u.test(subject)) return subject
  throw unusableIdentity(provider, 'the provider gave no usable subject')
}

/** True only for JSON true or the string "true" (some providers quote it); anything unknown is null, never false or true. */
export function verificationOf(value: unknown): boolean | null {
  if (value === true || value === 'true') return true
  if (value === false || value === 'false') return false
  return null
}

/** Control and format characters include the direction overrides that make a name read as another. */
function displayName(value: unknown): string | null {
  if (typeof value !== 'string') return null
  const visible = value.replace(/[\p{Cc}\p{Cs}\p{Bidi_Control}\u2028\u2029]/gu, '').trim()
  return [...visible].slice(0, 200).join('').trim() || null
}

function pictureUrl(value: unknown): string | null {
  if (typeof value !== 'string' || value.length > 1024 || !URL.canParse(value)) return null
  const url = new URL(value)
  const isPlain = url.protocol === 'https:' && url.username === '' && url.password === ''
  // `href` is the parser's spelling: quotes, blanks and line breaks are encoded or gone.
  return isPlain && url.href.length <= 1024 ? url.href : null
}
