/**
 * What the work comes to, or, once `deadlineMs` have passed, the error that `late` makes. What it still does by then is nobody's,
 * a rejection included. The timer keeps no process alive.
 */
export function inTime<T>(work: Promise<T>, deadlineMs: number, late: () => Error): Promise<T> {
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
