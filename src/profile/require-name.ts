import { ValidationError } from '../errors'

/**
 * Returns a person's name as it is stored: null for an empty one.
 * @throws ValidationError for more than 120 characters
 */
export function requireName(name: string | null | undefined): string | null {
  if (name === undefined || name === null || name === '') return null
  if (name.length <= 120) return name
  throw new ValidationError({ details: { errors: [{ path: 'name', rule: 'string.max' }] } })
}
