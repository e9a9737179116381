import Joi from 'joi'
import { ValidationError } from '../errors'

interface ValidateOptions {
  /** Of fields whose schema does not say. Ours are required; a host's schema is read as Joi reads it everywhere else. */
  presence?: 'required' | 'optional'
}

/** Joi's own message and context carry the submitted value (a password, say): only path and rule leave this file. */
export function validate<T>(schema: Joi.ObjectSchema<T>, value: unknown, { presence = 'required' }: ValidateOptions = {}): T {
  const result = schema.validate(value, {
    convert: false,
    abortEarly: true,
    stripUnknown: true,
    presence,
    errors: { render: false },
  })
  if (!result.error) return result.value
  const first = result.error.details[0]
  throw new ValidationError({ details: { errors: [{ path: first?.path.join('.') ?? '', rule: first?.type ?? 'invalid' }] } })
}

/** Text as it was sent: not trimmed, without NUL (PostgreSQL refuses it) and without lone surrogates (they collide once encoded). */
export function text(maxLength: number): Joi.StringSchema {
  return Joi.string().max(maxLength).custom(wellFormed)
}

function wellFormed(value: string, helpers: Joi.CustomHelpers): string | Joi.ErrorReport {
  return value.includes('\0') || !value.isWellFormed() ? helpers.error('string.malformed') : value
}

/**
 * A password exactly as sent: neither trimmed nor cut, and NUL is a character like any other. Lone surrogates are
 * refused, since encoded they would all be one password.
 */
export function passwordText(): Joi.StringSchema {
  return Joi.string().custom((value: string, helpers) => (value.isWellFormed() ? value : helpers.error('string.malformed')))
}
