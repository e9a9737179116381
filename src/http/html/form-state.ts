/** The values and the errors of a form. The values never contain a secret, so a person types a password again. */
export interface FormState {
  readonly values: Readonly<Record<string, string>>
  /** One message for each field. */
  readonly faults: Readonly<Record<string, string>>
  /** A message about the whole form. */
  readonly problem: string | null
}

export const emptyForm: FormState = Object.freeze({ values: {}, faults: {}, problem: null })
