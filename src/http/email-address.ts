import Joi from 'joi'
import { asciiLowerCase } from '../core/ascii-lower-case'
import { ValidationError } from '../core/errors'

/** In UTF-16 code units, as Joi and JavaScript count a text. */
const longest = 320

/** The rule for every address from a person, a provider or an administrator. */
export const emailAddress = Joi.string()
  .custom((value: string) => value.trim())
  .email({ tlds: { allow: false }, allowUnicode: false, minDomainSegments: 2, ignoreLength: true })
  .max(longest)

const required = emailAddress.required()

/** Returns the address without outer blanks, with ASCII letters in lower case; null if the rule rejects the address. */
export function normalizeEmail(value: unknown): string | null {
  const { error, value: email } = required.validate(value, { convert: false })
  return error ? null : asciiLowerCase(email)
}

/**
 * The form of every text that can be an address (RFC 5321, RFC 6531): a local part without blanks, or in quotation marks, then `@`, then a
 * domain without empty labels. A control character or a lone surrogate is in no address.
 */
const anyAddress = /^(?:[^\s@\p{Cc}\p{Cs}]+|"[^\p{Cc}\p{Cs}]+")@[^\s@.\p{Cc}\p{Cs}]+(?:\.[^\s@.\p{Cc}\p{Cs}]+)*\.?$/u

/**
 * The address of an account, as a person types it. The rule is looser than `emailAddress`, because a host's rows can have addresses that
 * `emailAddress` rejects. A text that cannot be an address is a malformed body, not a failed login.
 */
export const typedAddress = Joi.string()
  .custom((value: string) => value.trim())
  .max(longest)
  .custom((value: string, helpers) => (anyAddress.test(value) ? value : helpers.error('string.email')))

/**
 * Returns the text without outer blanks, with ASCII letters in lower case.
 * @throws ValidationError if the value cannot be an address of at most 320 characters
 */
export function readTypedAddress(value: unknown): string {
  const email = typeof value === 'string' ? value.trim() : ''
  if (email.length > longest || !anyAddress.test(email)) throw invalidEmail()
  return asciiLowerCase(email)
}

function invalidEmail(): ValidationError {
  return new ValidationError({ details: { errors: [{ path: 'email', rule: 'string.email' }] } })
}

/**
 * Returns the address without outer blanks, in lower case.
 * @throws ValidationError if the rule rejects the address
 */
export function requireEmail(value: unknown): string {
  const email = normalizeEmail(value)
  if (email === null) throw invalidEmail()
  return email
}
