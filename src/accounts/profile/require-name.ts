import { ValidationError } from '../../core/errors'

/**
 * Returns a person's name in its stored form. An empty name becomes null.
 * @throws ValidationError for more than 120 characters
 */
export function requireName(name: string | null | undefined): string | null {
  if (name === undefined || name === null || name === '') return null
  if (name.length <= 120) return name
  throw new ValidationError({ details: { errors: [{ path: 'name', rule: 'string.max' }] } })
}
