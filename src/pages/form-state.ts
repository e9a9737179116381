/** The values of a form, and its errors. Never a secret: a password must be typed again. */
export interface FormState {
  readonly values: Readonly<Record<string, string>>
  /** A message for each field. */
  readonly faults: Readonly<Record<string, string>>
  /** A message about the whole form. */
  readonly problem: string | null
}

export const emptyForm: FormState = Object.freeze({ values: {}, faults: {}, problem: null })
