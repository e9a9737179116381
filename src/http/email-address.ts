import Joi from 'joi'
import { asciiLowerCase } from '../ascii-lower-case'
import { ValidationError } from '../errors'

/** In UTF-16 code units, as Joi and JavaScript count a text. */
const longest = 320

/** The rule for every address from a person, a provider or an administrator. */
export const emailAddress = Joi.string()
  .email({ tlds: { allow: false }, allowUnicode: false, minDomainSegments: 2, ignoreLength: true })
  .max(longest)

const required = emailAddress.required()

/** Returns the address with ASCII letters in lower case, not trimmed; null if the rule rejects the address. */
export function normalizeEmail(value: unknown): string | null {
  const { error } = required.validate(value, { convert: false })
  return error ? null : asciiLowerCase(value as string) // the rule accepts only strings
}

/**
 * Any text that a person may type as the address of an account. Our rule is not used, because a host's rows can have addresses that our
 * rule rejects.
 */
export const typedAddress = Joi.string().allow('').max(longest)

/**
 * Returns the text with ASCII letters in lower case, not trimmed.
 * @throws ValidationError if the value is not a text of at most 320 characters
 */
export function readTypedAddress(value: unknown): string {
  if (typeof value !== 'string' || value.length > longest) throw invalidEmail()
  return asciiLowerCase(value)
}

function invalidEmail(): ValidationError {
  return new ValidationError({ details: { errors: [{ path: 'email', rule: 'string.email' }] } })
}

/**
 * Returns the address in lower case.
 * @throws ValidationError if the rule rejects the address
 */
export function requireEmail(value: unknown): string {
  const email = normalizeEmail(value)
  if (email === null) throw invalidEmail()
  return email
}
