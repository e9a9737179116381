import { checkbox, type FormState, type Part } from './document'
import type { Reader } from './reader'

/** Null if no browser is trusted. @param id must differ if the page has two */
export function trustCheckbox(reader: Reader, state: FormState, days: number, id?: string): Part {
  if (days === 0) return null
  const duration = new Intl.NumberFormat(reader.lang, { style: 'unit', unit: 'day', unitDisplay: 'long' }).format(days)
  return checkbox(state, {
    name: 'trust_device',
    ...(id !== undefined && { id }),
    label: reader.text('mfa.trust', { duration }),
    isChecked: false,
  })
}

/** An unchecked box sends no field. */
export function isTrustChecked(field: string | undefined): boolean {
  return field === 'on' || field === 'true'
}
