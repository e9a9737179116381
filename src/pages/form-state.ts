/** What a form is filled with, and what is wrong with it. Never a secret: a password is typed again. */
export interface FormState {
  readonly values: Readonly<Record<string, string>>
  /** A sentence by field. */
  readonly faults: Readonly<Record<string, string>>
  /** A sentence about the form as a whole. */
  readonly problem: string | null
}

export const emptyForm: FormState = Object.freeze({ values: {}, faults: {}, problem: null })
