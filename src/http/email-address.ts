import Joi from 'joi'
import { ValidationError } from '../errors'

/** One rule for every address, from a person, a provider or an administrator. */
export const emailAddress = Joi.string()
  .email({ tlds: { allow: false }, allowUnicode: false, minDomainSegments: 2, ignoreLength: true })
  .max(320)

const required = emailAddress.required()

/** ASCII lower-cased, not trimmed; null for anything the rule refuses. */
export function normalizeEmail(value: unknown): string | null {
  const { error } = required.validate(value, { convert: false })
  return error ? null : asciiLowerCase(value as string) // the rule above admits strings only
}

function asciiLowerCase(value: string): string {
  return value.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}

/**
 * Any text that somebody may type as the address of an account: rows that a host brought may have addresses our rule refuses,
 * and what is none is an account nobody has.
 */
export const typedAddress = Joi.string().allow('').max(320)

/** ASCII lower-cased, not trimmed. @throws ValidationError for what is no text of at most 320 characters */
export function readTypedAddress(value: unknown): string {
  const { error } = typedAddress.required().validate(value, { convert: false })
  if (error) throw invalidEmail()
  return asciiLowerCase(value as string) // the rule above admits strings only
}

function invalidEmail(): ValidationError {
  return new ValidationError({ details: { errors: [{ path: 'email', rule: 'string.email' }] } })
}

/** @throws ValidationError for anything the rule refuses */
export function requireEmail(value: unknown): string {
  const email = normalizeEmail(value)
  if (email === null) throw invalidEmail()
  return email
}
