/** In milliseconds. A result or rejection after the deadline is ignored. The timer does not keep the process alive. */
export function withTimeout<T>(work: Promise<T>, deadlineMs: number, late: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(late()), deadlineMs).unref()
    work.then(
      (value) => {
        clearTimeout(timer)
        resolve(value)
      },
      (error: unknown) => {
        clearTimeout(timer)
        reject(error)
      },
    )
  })
}
