import Joi from 'joi'
import { ValidationError } from '../errors'

/** One rule for every address, whoever says it: a person, a provider, an admin (contract section 13 (d)). */
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

/** @throws ValidationError for anything the rule refuses */
export function requireEmail(value: unknown): string {
  const email = normalizeEmail(value)
  if (email === null) throw new ValidationError({ details: { errors: [{ path: 'email', rule: 'string.email' }] } })
  return email
}
