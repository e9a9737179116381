export function after(instant: Date, seconds: number): Date {
  return new Date(instant.getTime() + seconds * 1000)
}

export function earlier(a: Date, b: Date): Date {
  return a < b ? a : b
}
