import Joi from 'joi'
import { ValidationError } from '../core/errors'

interface ValidateOptions {
  /**
   * Applies to fields with no `presence` in their schema. The library uses `required` for its own fields, and `optional` (Joi's default)
   * for a host's schema.
   */
  presence?: 'required' | 'optional'
}

/**
 * Validates a value. The error contains only the path and the rule, because Joi's message and context contain the submitted value, such as
 * a password.
 */
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

/**
 * Allows text and does not trim it. Rejects NUL, because PostgreSQL rejects NUL. Rejects lone surrogates, because all lone surrogates have
 * the same bytes in UTF-8.
 */
export function text(maxLength: number): Joi.StringSchema {
  return Joi.string().max(maxLength).custom(wellFormed)
}

function wellFormed(value: string, helpers: Joi.CustomHelpers): string | Joi.ErrorReport {
  return value.includes('\0') || !value.isWellFormed() ? helpers.error('string.malformed') : value
}

/**
 * Allows a password exactly as the client sent the password, not trimmed, not cut, and with NUL. The rule rejects lone surrogates, because
 * all lone surrogates have the same bytes in UTF-8. Different passwords would therefore count as equal.
 */
export function passwordText(): Joi.StringSchema {
  return Joi.string().custom((value: string, helpers) => (value.isWellFormed() ? value : helpers.error('string.malformed')))
}
