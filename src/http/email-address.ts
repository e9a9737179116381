import Joi from 'joi'
import { asciiLowerCase } from '../core/ascii-lower-case'
import { ValidationError } from '../core/errors'

/** In UTF-16 code units, as Joi and JavaScript count a text. */
const longest = 320

/** For every address from a person, a provider or an administrator. */
export const emailAddress = Joi.string()
  .custom((value: string) => value.trim())
  .email({ tlds: { allow: false }, allowUnicode: false, minDomainSegments: 2, ignoreLength: true })
  .max(longest)

const required = emailAddress.required()

/** Without outer blanks, ASCII letters in lower case. Null: the rule rejects the address. */
export function normalizeEmail(value: unknown): string | null {
  const { error, value: email } = required.validate(value, { convert: false })
  return error ? null : asciiLowerCase(email)
}

/** RFC 5321, RFC 6531: no blanks unless quoted, no empty labels, no control character and no lone surrogate. */
const anyAddress = /^(?:[^\s@\p{Cc}\p{Cs}]+|"[^\p{Cc}\p{Cs}]+")@[^\s@.\p{Cc}\p{Cs}]+(?:\.[^\s@.\p{Cc}\p{Cs}]+)*\.?$/u

/** A host's rows can have addresses that `emailAddress` rejects. Other text is a malformed body, not a failed login. */
export const typedAddress = Joi.string()
  .custom((value: string) => value.trim())
  .max(longest)
  .custom((value: string, helpers) => (anyAddress.test(value) ? value : helpers.error('string.email')))

/** Trims, and lowers ASCII letters. @throws ValidationError if it cannot be an address of at most 320 characters */
export function readTypedAddress(value: unknown): string {
  const email = typeof value === 'string' ? value.trim() : ''
  if (email.length > longest || !anyAddress.test(email)) throw invalidEmail()
  return asciiLowerCase(email)
}

function invalidEmail(): ValidationError {
  return new ValidationError({ details: { errors: [{ path: 'email', rule: 'string.email' }] } })
}

/** Without outer blanks, in lower case. @throws ValidationError if the rule rejects the address */
export function requireEmail(value: unknown): string {
  const email = normalizeEmail(value)
  if (email === null) throw invalidEmail()
  return email
}
