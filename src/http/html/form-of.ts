import { createHash } from 'node:crypto'

/** A digest of the person, for a hidden field. */
export function formOf({ id }: { readonly id: string }): string {
  return createHash('sha256').update(`doorward form of ${id}`).digest('base64url')
}
