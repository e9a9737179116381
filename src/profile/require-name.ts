import { ValidationError } from '../errors'

/** A person's name as it is stored: an empty one is none. @throws ValidationError for more than 120 characters */
export function requireName(name: string | null | undefined): string | null {
  if (name === undefined || name === null || name === '') return null
  if (name.length <= 120) return name
  throw new ValidationError({ details: { errors: [{ path: 'name', rule: 'string.max' }] } })
}
