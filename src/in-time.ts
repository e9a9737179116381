/**
 * What the work comes to, or, once `deadlineMs` have passed, the error that `late` makes. What it still does by then is nobody's,
 * a rejection included. The timer keeps no process alive.
 */
export async function inTime<T>(work: Promise<T>, deadlineMs: number, late: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), deadlineMs).unref()
  })
  try {
    return await Promise.race([work, deadline])
  } finally {
    clearTimeout(timer)
  }
}
