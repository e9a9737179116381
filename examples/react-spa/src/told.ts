import { AuthClientError } from 'doorward/client'
import { useState } from 'react'

/** Runs an operation, and keeps the sentence for the person: a refusal, or `success`. */
export function useTold() {
  const [told, tell] = useState('')
  const run = (work: Promise<unknown>, success = '') =>
    work.then(
      () => tell(success),
      (error: unknown) => tell(error instanceof AuthClientError ? error.detail || String(error.code) : String(error)),
    )
  return { told, tell, run }
}
