export type Point = { x: number; y: number }

/** The line of least squares through some points, and how far its slope may be off by chance (one standard error). */
export function fitSlope(points: readonly Point[]): { slope: number; error: number } {
  const n = points.length
  const meanX = mean(points.map(({ x }) => x))
  const meanY = mean(points.map(({ y }) => y))
  const spreadX = sum(points.map(({ x }) => (x - meanX) ** 2))
  const slope = spreadX === 0 ? 0 : sum(points.map(({ x, y }) => (x - meanX) * (y - meanY))) / spreadX
  const residuals = sum(points.map(({ x, y }) => (y - meanY - slope * (x - meanX)) ** 2))
  return { slope, error: n > 2 ? Math.sqrt(residuals / (n - 2) / spreadX) : Number.POSITIVE_INFINITY }
}

const sum = (values: number[]) => values.reduce((total, value) => total + value, 0)
const mean = (values: number[]) => sum(values) / values.length
